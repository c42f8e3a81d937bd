-- Entries by their ids, as lists show them, wherever they are. All leases are opened: they are few.
select r.id, r.seq, r.channel, r.tenant_id, r.principal, r.group_key, r.event_type, r.key, r.payload_size_bytes, r.priority,
       r.occurred_at, r.created_at, case when w.seq is null then e.state when w.batch_id is null then 'pending' else 'claimed' end,
       w.due, coalesce(t.attempt_count, e.attempt_count, 0), coalesce(t.crash_count, e.crash_count, 0),
       coalesce(t.last_attempt_at, case when e.attempt_count > 0 then e.ended_at end),
       coalesce(t.last_error_code, e.last_error_code), coalesce(t.last_error_message, e.last_error_message), l.owner, l.expires_at,
       case when e.state = 'delivered' then e.ended_at end, case when e.state = 'dead' then e.ended_at end, e.dlq_reason
  from json_each(:ids) as i
 cross join carrick_record as r on r.id = i.value
  left join carrick_work as w on w.seq = r.seq
  left join carrick_trouble as t on w.troubled = 1 and t.seq = r.seq
  left join carrick_lease as l on l.batch_id = w.batch_id
  left join carrick_ended as e on e.seq = r.seq
