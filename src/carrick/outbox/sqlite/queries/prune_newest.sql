-- The newest record of the file stays, emptied, so that its sequence number is not given again. It is no entry: it neither
-- waits nor has ended. The prune after a younger one has come removes it (prune_emptied.sql).
update carrick_record
   set id = 'pruned', channel = '', tenant_id = '', principal = null, group_key = null, event_type = 'pruned', key = null,
       payload = 'null', headers = null, traceparent = null, occurred_at = null
 where seq in (select value from json_each(:seqs))
