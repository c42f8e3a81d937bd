-- Claimed entries behind a given one, in the order in which they were put. All leases are opened: they are few.
select r.id, r.seq, r.channel, r.tenant_id, r.principal, r.group_key, r.event_type, r.key, r.payload_size_bytes, r.priority,
       r.occurred_at, r.created_at, 'claimed', w.due, coalesce(t.attempt_count, 0), coalesce(t.crash_count, 0),
       t.last_attempt_at, t.last_error_code, t.last_error_message, l.owner, l.expires_at, null, null, null,
       null, 1
  from carrick_lease as l
 cross join carrick_work as w on w.batch_id = l.batch_id
 cross join carrick_record as r on r.seq = w.seq
  left join carrick_trouble as t on w.troubled = 1 and t.seq = w.seq
 where l.channel = :channel and w.seq > :after_seq and (:tenant is null or w.tenant_id = :tenant)
 order by w.seq limit :rows
