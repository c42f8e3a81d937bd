-- What was claimed, with everything a sink needs. Sorted here for streams; groups are put together by the caller.
select r.id, r.seq, r.channel, r.tenant_id, r.principal, r.group_key, r.event_type, r.key, cast(r.payload as blob),
       r.headers, r.payload_size_bytes, r.priority, r.traceparent, r.occurred_at, r.created_at,
       coalesce(t.attempt_count, 0), coalesce(t.crash_count, 0), t.intent, w.rank
  from carrick_work as w
 cross join carrick_record as r on r.seq = w.seq
  left join carrick_trouble as t on w.troubled = 1 and t.seq = w.seq
 where w.batch_id = :batch_id
 order by w.rank, w.seq
