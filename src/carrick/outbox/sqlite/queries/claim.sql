-- The entries being claimed, with everything a sink needs but their troubles. In no order: the caller sorts, which costs less
-- than carrying payloads through a sort here.
select r.id, r.seq, r.tenant_id, r.principal, r.group_key, r.event_type, r.key, cast(r.payload as blob), r.headers,
       r.payload_size_bytes, r.priority, r.traceparent, r.occurred_at, r.created_at
  from json_each(:picked) as p
 cross join carrick_record as r on r.seq = p.value
