-- What must be known of entries with a key before they go.
select r.tenant_id, r.key, r.id, e.state, r.event_type, r.payload, r.group_key, r.principal
  from json_each(:seqs) as s
 cross join carrick_record as r on r.seq = s.value
 cross join carrick_ended as e on e.seq = s.value
 where r.key is not null
