-- Entries by their ids, as lists show them, wherever they are. All leases are opened: they are few. Not through the view, where the way to the
-- rows depends on what was counted when; see 0001, "Ways to rows". pin_plan.sql goes before.
with held as materialized (
  select h.seq, h.id, h.due, l.troubled, l.owner, l.expires_at
    from carrick.lease l cross join lateral unnest(l.seqs, l.ids, l.dues) as h(seq, id, due)
   where h.id = any(%(ids)s::uuid[]))
select r.id, r.seq, r.channel, r.tenant_id, r.principal, r.group_key, r.event_type, r.key, r.payload_size_bytes, r.priority,
       r.occurred_at, r.created_at, x.state, x.due, x.attempt_count, x.crash_count, x.last_attempt_at, x.last_error_code,
       x.last_error_message, x.owner, x.expires_at, case when x.state = 'delivered' then x.ended_at end,
       case when x.state = 'dead' then x.ended_at end, x.dlq_reason
  from unnest(%(ids)s::uuid[]) as i(id)
 cross join lateral carrick._record(i.id) r
 cross join lateral (
   select 'pending' as state, w.due, coalesce(t.attempt_count, 0) as attempt_count, coalesce(t.crash_count, 0) as crash_count, t.last_attempt_at,
          t.last_error_code, t.last_error_message, null::text as owner, null::timestamptz as expires_at, null::timestamptz as ended_at,
          null::text as dlq_reason
     from unnest(carrick._places(array[r.seq])) as p(at)
    cross join lateral carrick._at(p.at) w
     left join lateral carrick._trouble(case when w.troubled then w.seq end) t on true
    where w.id = r.id
   union all
   select 'claimed', h.due, coalesce(t.attempt_count, 0), coalesce(t.crash_count, 0), t.last_attempt_at, t.last_error_code, t.last_error_message,
          h.owner, h.expires_at, null, null
     from held h left join lateral carrick._trouble(case when h.troubled then h.seq end) t on true
    where h.id = r.id
   union all
   select e.state, null, e.attempt_count, e.crash_count, case when e.attempt_count > 0 then e.ended_at end, e.last_error_code, e.last_error_message,
          null, null, e.ended_at, e.dlq_reason
     from carrick._ended(r.seq) e where e.id = r.id) x
