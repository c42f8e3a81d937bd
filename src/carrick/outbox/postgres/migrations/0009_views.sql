-- What people look at. `entry` is one branch per place an entry can be in, so that a filter on state reads only there.

create view carrick.entry as
select r.id, r.seq, r.channel, r.tenant_id, r.principal, r.group_key, r.event_type, r.key, r.payload, r.headers,
       r.payload_size_bytes, r.priority, r.traceparent, r.occurred_at, r.created_at,
       'pending'::text as state, w.due as next_attempt_at, coalesce(t.attempt_count, 0) as attempt_count,
       coalesce(t.crash_count, 0) as crash_count, t.last_attempt_at, t.last_error_code, t.last_error_message,
       null::text as claimed_by, null::timestamptz as claimed_at, null::uuid as lease_token,
       null::timestamptz as lease_expires_at, t.frozen_batch as batch_id, t.intent,
       null::timestamptz as delivered_at, null::timestamptz as failed_at, null::text as dlq_reason
  from carrick.record r
  join carrick.work w on w.seq = r.seq and w.id = r.id
  left join carrick.trouble t on w.troubled and t.seq = w.seq
union all
select r.id, r.seq, r.channel, r.tenant_id, r.principal, r.group_key, r.event_type, r.key, r.payload, r.headers,
       r.payload_size_bytes, r.priority, r.traceparent, r.occurred_at, r.created_at,
       'claimed', h.due, coalesce(t.attempt_count, 0), coalesce(t.crash_count, 0), t.last_attempt_at, t.last_error_code,
       t.last_error_message, l.owner, l.claimed_at, l.token, l.expires_at, l.batch_id, coalesce(l.intent, t.intent),
       null, null, null
  from carrick.lease l
 cross join lateral unnest(l.seqs, l.ids, l.dues) as h(seq, id, due)
  join carrick.record r on r.id = h.id
  left join carrick.trouble t on l.troubled and t.seq = h.seq
union all
select r.id, r.seq, r.channel, r.tenant_id, r.principal, r.group_key, r.event_type, r.key, r.payload, r.headers,
       r.payload_size_bytes, r.priority, r.traceparent, r.occurred_at, r.created_at,
       e.state, null, e.attempt_count, e.crash_count, case when e.attempt_count > 0 then e.ended_at end, e.last_error_code,
       e.last_error_message, null, null, null, null, null, null,
       case when e.state = 'delivered' then e.ended_at end, case when e.state = 'dead' then e.ended_at end, e.dlq_reason
  from carrick.record r
  join carrick.ended e on e.seq = r.seq and e.id = r.id;

-- The facts behind `explain`, about one entry, at one moment.
create function carrick._standing(p_id uuid)
  returns table (now timestamptz, frozen boolean, gate_scope text, gate_until timestamptz, gate_reason text,
                 gate_failures int, gate_closed_by text, blocked_by uuid, group_held boolean, group_due_at timestamptz, rank_ahead int)
  language plpgsql stable
  set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  r carrick.record;
  w carrick.work;
  c carrick.channel;
  v_held_principals text[];
  v_batch uuid; -- the frozen batch that it is part of, or waits for
begin
  now := carrick.clock();
  group_held := false;
  frozen := false;
  rank_ahead := 0;
  select x.* into r from carrick._record(p_id) x;
  select x.* into w from carrick.work x where x.ctid = any(carrick._places(array[r.seq]));
  if not found then
    return next;
    return;
  end if;
  select x.* into c from carrick.channel x where x.name = r.channel;
  v_batch := (select t.frozen_batch from carrick._trouble(r.seq) t);
  frozen := v_batch is not null;
  if c.mode <> 'stream' and r.group_key is not null then
    group_held := exists (select from carrick._hold(r.channel, r.tenant_id, r.group_key));
    if c.mode = 'ordered' then
      select x.id into blocked_by from carrick._group(r.channel, r.tenant_id, r.group_key) x
       where x.seq < r.seq order by x.group_key, x.seq limit 1;
    else
      v_held_principals := array(select substr(g.scope, 11) from carrick.gate g
                                  where g.channel = r.channel and g.scope like 'principal:%' and g.closed_until > now);
      if not frozen then
        select x.id, t.frozen_batch into blocked_by, v_batch
          from carrick._group(r.channel, r.tenant_id, r.group_key) x cross join lateral carrick._trouble(x.seq) t
         where t.frozen_batch is not null and (x.principal is null or x.principal <> all (v_held_principals))
         order by x.group_key, x.seq limit 1;
      end if;
      select greatest(max(x.due) filter (where x.troubled),
                      least(min(x.due) filter (where not x.delayed),
                            coalesce(max(x.due) filter (where x.delayed), min(x.due)), min(x.max_wait_at)))
        into group_due_at
        from carrick._group(r.channel, r.tenant_id, r.group_key) x
       where x.seq = r.seq or x.principal is null or x.principal <> all (v_held_principals);
    end if;
  end if;
  select g.scope, g.closed_until, g.reason, g.consecutive_failures, g.closed_by
    into gate_scope, gate_until, gate_reason, gate_failures, gate_closed_by
    from carrick.gate g
   where g.channel = r.channel and g.closed_until > now
     and (g.scope in ('*', 'tenant:' || r.tenant_id, 'principal:' || r.principal)
          or g.scope in (select s.scope
                           from unnest(carrick._places(array(select t.seq from carrick.trouble t where t.frozen_batch = v_batch))) as p(at)
                          cross join lateral carrick._at(p.at) x
                          cross join lateral (values ('tenant:' || x.tenant_id), ('principal:' || x.principal)) s(scope)))
   order by g.closed_until desc limit 1;
  select count(*) into rank_ahead
    from (select from carrick.work x
           where x.channel = r.channel and x.tenant_id = r.tenant_id and (x.rank, x.seq) < (w.rank, w.seq)
           limit 1000) ahead;
  return next;
end $$;
