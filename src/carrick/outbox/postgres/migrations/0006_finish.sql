-- Every write after a claim: it finds the lease by its token and changes nothing when the lease has moved on (G3).

create function carrick.renew(token uuid, seconds int) returns int
  language plpgsql as $$
declare
  v_token alias for token;
  v_seconds alias for seconds;
  v_held int;
begin
  perform carrick._check_limit('seconds', coalesce(v_seconds, 0), 86400);
  with renewed as (
    update carrick.lease l set expires_at = carrick.clock() + v_seconds * interval '1 second'
     where l.token = v_token returning cardinality(l.seqs) as n)
  select coalesce(sum(n), 0) into v_held from renewed;
  return v_held;
end $$;

-- `ids`: the entries that it is about; null: all.
create function carrick.note(token uuid, intent jsonb, ids uuid[] default null) returns int
  language sql as $$
  with noted as (
    update carrick.lease l set intent = note.intent, noted = note.ids where l.token = note.token returning cardinality(l.seqs) as n)
  select coalesce(sum(n), 0)::int from noted
$$;

-- min(cap, base * 2^(attempts - 1)) with equal jitter: between half and all of it.
create function carrick._backoff(p_base double precision, p_cap double precision, p_attempts int) returns interval
  language sql volatile
  as $$ select least(p_cap, p_base * power(2, least(p_attempts - 1, 60))) * (0.5 + random() / 2) * interval '1 second' $$;

-- What was taken under a lease and is no longer: groups become free; the lease goes when nothing is left in it.
create function carrick._shrink_lease(p_batch uuid, p_gone bigint[]) returns void
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  l carrick.lease;
begin
  select x.* into l from carrick.lease x where x.batch_id = p_batch;
  if cardinality(p_gone) >= cardinality(l.seqs) then
    delete from carrick.lease x where x.batch_id = p_batch;
    if l.grouped then
      delete from carrick.hold h where h.batch_id = p_batch;
    end if;
    return;
  end if;
  with kept as (
    select h.* from unnest(l.seqs, l.ids, l.dues) with ordinality as h(seq, id, due, n)
      left join unnest(p_gone) as g(seq) on g.seq = h.seq where g.seq is null)
  update carrick.lease x
     set (seqs, ids, dues, bytes) = (
       select array_agg(k.seq order by k.n), array_agg(k.id order by k.n), array_agg(k.due order by k.n), sum(r.payload_size_bytes)
         from kept k cross join lateral carrick._record(k.id) r)
   where x.batch_id = p_batch returning x.* into l;
  if l.grouped then
    delete from carrick.hold h
     where h.batch_id = p_batch
       and (h.tenant_id, h.group_key) not in (select r.tenant_id, r.group_key from unnest(l.ids) as k(id)
                                               cross join lateral carrick._record(k.id) r where r.group_key is not null);
  end if;
end $$;

create function carrick._refuse_outcome(p_outcome jsonb) returns void
  language plpgsql as $$
begin
  if not exists (select from carrick.transition t where t.outcome = p_outcome ->> 'outcome') then
    perform carrick._fail('CK004', format('outcomes: unknown outcome %s', coalesce(quote_literal(p_outcome ->> 'outcome'), 'null')),
                          'accepted: delivered, duplicate, retry, unsure, rejected, released');
  elsif jsonb_typeof(p_outcome -> 'after') not in ('number', 'null') or (p_outcome ->> 'after')::numeric not between -1e300 and 1e300 then
    perform carrick._fail('CK004', format('outcomes: after %s is no number of seconds', left((p_outcome -> 'after')::text, 80)),
                          'accepted: seconds as a JSON number, at most 31622400 count');
  end if;
  perform carrick._fail('CK004', format('outcomes: id %s is no UUID', coalesce(quote_literal(left(p_outcome ->> 'id', 80)), 'null')),
                        'accepted: the id of a claimed entry');
end $$;

create function carrick.finish(token uuid, outcomes jsonb) returns table (id uuid, state text)
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_token alias for token;
  v_outcomes alias for outcomes;
  v_now timestamptz := carrick.clock();
  v_wrong jsonb;
  v_frozen uuid := gen_random_uuid();
  c carrick.channel;
  l carrick.lease;
  v_ids uuid[];
  v_states text[];
  v_gone bigint[];
  v_bytes bigint;
  v_released boolean;
  v_failed boolean;
begin
  if jsonb_typeof(v_outcomes) is distinct from 'array' then
    perform carrick._fail('CK004', 'outcomes: not a JSON array', 'accepted: [{"id","outcome","after"?,"code"?,"message"?}]');
  end if;
  select g.value into v_wrong from jsonb_array_elements(v_outcomes) g
   where not exists (select from carrick.transition t where t.outcome = g.value ->> 'outcome')
      or coalesce(g.value ->> 'id', '') !~ '^([0-9a-fA-F]{4}-?){7}[0-9a-fA-F]{4}$'
      or case jsonb_typeof(g.value -> 'after') when 'number' then abs((g.value ->> 'after')::numeric) > 1e300
                                               when 'null' then false else g.value ? 'after' end
   limit 1;
  if found then
    perform carrick._refuse_outcome(v_wrong);
  end if;
  for l in select x.* from carrick.lease x where x.token = v_token order by x.batch_id for update loop
    c := carrick._known_channel(l.channel);
    with given as materialized (
      select distinct on (g.id) g.id, g.outcome, case when g.after > 0 then least(g.after, 31622400) end as after, left(g.code, 255) as code,
             left(g.message, 2000) as message
        from jsonb_to_recordset(v_outcomes) as g(id uuid, outcome text, after double precision, code text, message text)),
    fate as materialized (
      select h.n, h.seq, h.id, h.due, g.outcome, g.after, g.code, g.message, tr.freezes, tr.spends_attempt,
             coalesce(t.attempt_count, 0) + tr.spends_attempt::int as attempts,
             t.seq is not null as troubled, t.crash_count, t.last_error_code, t.last_error_message, t.last_attempt_at,
             t.batch_cap, t.frozen_batch, t.intent,
             case when tr.next_state = 'pending' and tr.spends_attempt
                       and coalesce(t.attempt_count, 0) + 1 >= c.max_attempts then 'dead' else tr.next_state end as next_state
        from unnest(l.seqs, l.ids, l.dues) with ordinality as h(seq, id, due, n)
        join given g on g.id = h.id
        join carrick.transition tr on tr.outcome = g.outcome
        left join lateral carrick._trouble(case when l.troubled then h.seq end) t on true),
    over as (
      insert into carrick.ended (seq, id, channel, state, ended_at, attempt_count, crash_count, last_error_code,
                                 last_error_message, dlq_reason)
      select f.seq, f.id, l.channel, f.next_state, v_now, f.attempts, coalesce(f.crash_count, 0),
             coalesce(f.code, f.last_error_code), coalesce(f.message, f.last_error_message),
             case when f.next_state = 'dead' then case f.outcome when 'rejected' then 'rejected' else 'max_attempts' end end
        from fate f where f.next_state <> 'pending'),
    healed as (
      delete from carrick.trouble t
       where t.seq = any(array(select f.seq from fate f where f.troubled and f.next_state <> 'pending'))),
    worse as (
      -- an attempt that ran to its end clears the suspicion of a crash; what was merely released keeps it
      insert into carrick.trouble as t (seq, attempt_count, crash_count, last_attempt_at, last_error_code,
                                        last_error_message, intent, batch_cap, frozen_batch)
      select f.seq, f.attempts, 0, v_now, f.code, f.message,
             case when f.freezes then coalesce(case when l.noted is null or f.id = any(l.noted) then l.intent end, f.intent) end, null, case when f.freezes then v_frozen end
        from fate f where f.next_state = 'pending' and f.spends_attempt
      on conflict (seq) do update
        set attempt_count = excluded.attempt_count, crash_count = 0, last_attempt_at = excluded.last_attempt_at,
            last_error_code = excluded.last_error_code, last_error_message = excluded.last_error_message,
            intent = excluded.intent, batch_cap = null, frozen_batch = excluded.frozen_batch),
    back as (
      insert into carrick.work (seq, id, channel, tenant_id, principal, group_key, size, priority, due, rank, troubled, special)
      select f.seq, f.id, r.channel, r.tenant_id, r.principal, r.group_key, r.payload_size_bytes, r.priority,
             d.due, carrick._rank(d.due, r.priority), f.spends_attempt or f.troubled,
             f.freezes or (not f.spends_attempt and f.troubled and (f.batch_cap is not null or f.frozen_batch is not null))
        from fate f
       cross join lateral carrick._record(f.id) r
       cross join lateral (
         select case when f.spends_attempt
                     then v_now + greatest(carrick._backoff(c.backoff_base_seconds, c.backoff_cap_seconds, f.attempts),
                                           coalesce(f.after, 0) * interval '1 second')
                     else greatest(f.due, v_now + f.after * interval '1 second') end) d(due) -- null after: its own time
       where f.next_state = 'pending')
    select array_agg(f.id order by f.n), array_agg(f.next_state order by f.n), array_agg(f.seq),
           (select sum(r.payload_size_bytes) from fate x cross join lateral carrick._record(x.id) r
             where c.max_backlog_bytes is not null and x.next_state <> 'pending'),
           bool_or(not f.spends_attempt),
           bool_or(f.outcome in ('retry', 'unsure', 'rejected') or (f.outcome = 'released' and f.code is not null))
      into v_ids, v_states, v_gone, v_bytes, v_released, v_failed from fate f;
    if v_ids is not null then
      if c.mode = 'coalesce' then
        perform carrick._freeze_by_group(v_frozen);
      end if;
      perform carrick._shrink_lease(l.batch_id, v_gone);
      if v_bytes is not null then
        perform carrick._count_backlog(l.channel, -v_bytes);
      end if;
      if v_released then -- due now, perhaps, and whoever gave them back may be going
        perform carrick._wake(l.channel);
      end if;
      if v_failed and (c.last_error_at is null or c.last_error_at not between v_now - interval '1 second' and v_now) then
        -- who finds it locked need not wait: somebody else writes the same second
        update carrick.channel x set last_error_at = v_now
         where x.name = (select y.name from carrick.channel y where y.name = l.channel for update skip locked);
      end if;
      return query select * from unnest(v_ids, v_states);
    end if;
  end loop;
end $$;

-- In coalesce channels every group is a unit of its own: entries just frozen together are frozen group by group.
create function carrick._freeze_by_group(p_frozen uuid) returns void
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_unit bigint[];
  v_frozen uuid;
begin
  for v_unit in
    select array_agg(w.seq)
      from unnest(carrick._places(array(select t.seq from carrick.trouble t where t.frozen_batch = p_frozen))) as p(at)
     cross join lateral carrick._at(p.at) w
     group by w.tenant_id, coalesce(w.group_key, w.id::text)
  loop
    v_frozen := gen_random_uuid();
    update carrick.trouble t set frozen_batch = v_frozen where t.seq = any(v_unit);
  end loop;
end $$;

create function carrick.finish_all(token uuid) returns table (id uuid, state text)
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_token alias for token;
  l carrick.lease;
begin
  for l in select x.* from carrick.lease x where x.token = v_token order by x.batch_id for update loop
    if l.troubled then
      return query select f.id, f.state
        from carrick.finish(v_token, (select jsonb_agg(jsonb_build_object('id', i, 'outcome', 'delivered')) from unnest(l.ids) i)) f;
    else
      insert into carrick.ended (seq, id, channel, state, ended_at, attempt_count)
      select h.seq, h.id, l.channel, 'delivered', carrick.clock(), 1 from unnest(l.seqs, l.ids) as h(seq, id);
      delete from carrick.lease x where x.batch_id = l.batch_id;
      if l.grouped then
        delete from carrick.hold h where h.batch_id = l.batch_id;
      end if;
      if exists (select from carrick.channel c where c.name = l.channel and c.max_backlog_bytes is not null) then
        perform carrick._count_backlog(l.channel, -l.bytes);
      end if;
      return query select h.id, 'delivered' from unnest(l.ids) as h(id);
    end if;
  end loop;
end $$;

create function carrick.release(token uuid) returns int
  language sql as $$
  select count(*)::int
    from carrick.finish(release.token,
           (select coalesce(jsonb_agg(jsonb_build_object('id', i, 'outcome', 'released')), '[]')
              from carrick.lease l cross join unnest(l.ids) i where l.token = release.token))
$$;

-- A lease that ended means that a worker died, perhaps because of one entry. Its entries come back in batches at most
-- half as large; one that was alone counts a crash, and dies of the fifth. What a coalesced delivery had noted is frozen.
create function carrick._return_expired(p_channel text, p_before timestamptz) returns int
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  c carrick.channel := carrick._known_channel(p_channel);
  v_now timestamptz := carrick.clock();
  l carrick.lease;
  v_frozen uuid;
  v_count int := 0;
  v_dead bigint[];
begin
  for l in select x.* from carrick.lease x where x.channel = p_channel and x.expires_at <= p_before
            order by x.expires_at for update skip locked
  loop
    v_frozen := case when c.mode = 'coalesce' and l.intent is not null then gen_random_uuid() end;
    insert into carrick.trouble as t (seq, crash_count, intent, batch_cap, frozen_batch)
    select h.seq, (l.units = 1)::int, case when n.is_noted then l.intent end, greatest(1, l.units / 2), case when n.is_noted then v_frozen end
      from unnest(l.seqs, l.ids) as h(seq, id) cross join lateral (select l.noted is null or h.id = any(l.noted) as is_noted) n
    on conflict (seq) do update
      set crash_count = t.crash_count + excluded.crash_count, intent = coalesce(excluded.intent, t.intent),
          batch_cap = excluded.batch_cap, frozen_batch = coalesce(t.frozen_batch, excluded.frozen_batch);
    insert into carrick.work (seq, id, channel, tenant_id, principal, group_key, size, priority, due, rank, troubled, special)
    select h.seq, h.id, r.channel, r.tenant_id, r.principal, r.group_key, r.payload_size_bytes, r.priority, h.due,
           carrick._rank(h.due, r.priority), true, true
      from unnest(l.seqs, l.ids, l.dues) as h(seq, id, due) cross join lateral carrick._record(h.id) r;
    if v_frozen is not null then
      perform carrick._freeze_by_group(v_frozen);
    end if;
    v_dead := array(select t.seq from carrick.trouble t where t.seq = any(l.seqs) and t.crash_count >= 5);
    perform carrick._end_waiting(d, 'crash_loop') from unnest(v_dead) d;
    delete from carrick.lease x where x.batch_id = l.batch_id;
    if l.grouped then
      delete from carrick.hold h where h.batch_id = l.batch_id;
    end if;
    v_count := v_count + cardinality(l.seqs);
  end loop;
  return v_count;
end $$;

create function carrick.release_expired(channel text, older_than_seconds numeric default 0) returns int
  language plpgsql as $$
declare
  v_channel alias for channel;
  v_older alias for older_than_seconds;
begin
  if v_older is null or v_older < 0 or v_older = 'NaN' then
    perform carrick._fail('CK004', format('older_than_seconds: %s is out of range', coalesce(v_older::text, 'null')), 'accepted: 0 or more');
  end if;
  perform carrick._known_channel(v_channel);
  return carrick._return_expired(v_channel, carrick.clock() - least(v_older, 3153600000) * interval '1 second');
end $$;
