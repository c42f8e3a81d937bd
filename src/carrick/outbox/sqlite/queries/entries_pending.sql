-- Waiting entries behind a given one, in the order in which they were put, by the key of the table: entries of other channels are
-- passed over on the way. An order by age within a channel would need an index that every put pays for.
select r.id, r.seq, r.channel, r.tenant_id, r.principal, r.group_key, r.event_type, r.key, r.payload_size_bytes, r.priority,
       r.occurred_at, r.created_at, 'pending', w.due, coalesce(t.attempt_count, 0), coalesce(t.crash_count, 0),
       t.last_attempt_at, t.last_error_code, t.last_error_message, null, null, null, null, null,
       w.rank, 1
  from carrick_work as w not indexed
 cross join carrick_record as r on r.seq = w.seq
  left join carrick_trouble as t on w.troubled = 1 and t.seq = w.seq
 where w.channel = :channel and w.batch_id is null and (:tenant is null or w.tenant_id = :tenant) and w.seq > :after_seq
 order by w.seq limit :rows
