-- The facts about where one entry stands; times as stored. PostgreSQL has a function for the rest, here it is more queries.
select r.seq, k.now, r.channel, r.tenant_id, r.principal, r.group_key, r.event_type, r.created_at,
       case when w.seq is null then e.state when w.batch_id is null then 'pending' else 'claimed' end,
       coalesce(t.attempt_count, e.attempt_count, 0), coalesce(t.crash_count, e.crash_count, 0), w.due, w.rank,
       coalesce(t.last_attempt_at, case when e.attempt_count > 0 then e.ended_at end),
       coalesce(t.last_error_code, e.last_error_code), coalesce(t.last_error_message, e.last_error_message),
       l.owner, l.claimed_at, l.expires_at, e.ended_at, e.dlq_reason, t.frozen_batch, c.mode
  from carrick_record as r
 cross join carrick_clock as k
  left join carrick_channel as c on c.name = r.channel
  left join carrick_work as w on w.seq = r.seq
  left join carrick_trouble as t on w.troubled = 1 and t.seq = r.seq
  left join carrick_lease as l on l.batch_id = w.batch_id
  left join carrick_ended as e on e.seq = r.seq
 where r.id = :id
