-- Puts entries whose keys are new, as put_many.sql, where no key is remembered: for drivers that bind many values quickly. The row
-- is repeated for each entry (bulk.py). Nothing waits until admit.sql has run.
insert into carrick_record (channel, tenant_id, principal, group_key, event_type, key, payload, headers, priority, traceparent,
                            occurred_at, delay_seconds, max_wait_seconds, id, created_at, admitted)
values (:channel, :tenant_id, :principal, :group_key, :event_type, :key, :payload, :headers, :priority, :traceparent,
        :occurred_at, :delay_seconds, :max_wait_seconds, :id, :now, 1)
on conflict (channel, tenant_id, key) where key is not null do nothing
returning id
