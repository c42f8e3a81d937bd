-- Entries that are dead behind a given place, in the order in which they ended. Whose they are stands in the record, so for
-- one tenant the next `look` entries are looked at; the last of them comes back too, as the place to go on from.
select r.id, r.seq, r.channel, r.tenant_id, r.principal, r.group_key, r.event_type, r.key, r.payload_size_bytes, r.priority,
       r.occurred_at, r.created_at, 'dead', null, seen.attempt_count, seen.crash_count,
       case when seen.attempt_count > 0 then seen.ended_at end, seen.last_error_code, seen.last_error_message, null, null, null, seen.ended_at, seen.dlq_reason,
       seen.ended_at, :tenant is null or r.tenant_id = :tenant
  from (select looked.*, row_number() over (order by looked.ended_at, looked.seq) as n
          from (select e.* from carrick_ended as e
                 where e.channel = :channel and e.state = 'dead' and (e.ended_at, e.seq) > (:after_at, :after_seq)
                 order by e.ended_at, e.seq limit :look) as looked) as seen
 cross join carrick_record as r on r.seq = seen.seq
 where :tenant is null or r.tenant_id = :tenant or seen.n = :look
 order by seen.ended_at, seen.seq limit :rows
