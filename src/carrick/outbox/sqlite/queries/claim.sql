-- What is being claimed, with everything a sink needs, and what its lease must know. In no order: the caller sorts, which
-- costs less than carrying payloads through a sort here.
select r.id, r.seq, r.channel, r.tenant_id, r.principal, r.group_key, r.event_type, r.key, cast(r.payload as blob),
       r.headers, r.payload_size_bytes, r.priority, r.traceparent, r.occurred_at, r.created_at,
       coalesce(t.attempt_count, 0), coalesce(t.crash_count, 0), t.intent, w.rank, w.troubled
  from json_each(:picked) as p
 cross join carrick_work as w on w.seq = p.value
 cross join carrick_record as r on r.seq = w.seq
  left join carrick_trouble as t on w.troubled = 1 and t.seq = w.seq
