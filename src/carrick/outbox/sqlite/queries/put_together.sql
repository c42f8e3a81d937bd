-- Puts entries without keys that came together: by one statement, so all or none. The row is repeated for each (bulk.py), and each is
-- admitted by itself. The answer has those of bounded channels, where one may have been dead at once.
with given (channel, tenant_id, principal, group_key, event_type, key, payload, headers, priority, traceparent, occurred_at,
            delay_seconds, max_wait_seconds, id) as (
  values (:channel, :tenant_id, :principal, :group_key, :event_type, :key, :payload, :headers, :priority, :traceparent,
          :occurred_at, :delay_seconds, :max_wait_seconds, :id))
insert into carrick_record (id, channel, tenant_id, principal, group_key, event_type, key, payload, headers, priority,
                            traceparent, occurred_at, created_at, delay_seconds, max_wait_seconds)
select g.id, g.channel, g.tenant_id, g.principal, g.group_key, g.event_type, g.key, g.payload, g.headers, g.priority, g.traceparent,
       g.occurred_at, k.now, g.delay_seconds, g.max_wait_seconds
  from carrick_clock as k cross join given as g
returning id, seq, exists (select 1 from carrick_backlog as b where b.channel = carrick_record.channel)
