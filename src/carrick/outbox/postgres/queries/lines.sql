-- Entries by their ids, as lists show them, wherever they are. All leases are opened: they are few. pin_plan.sql goes before.
select id, seq, channel, tenant_id, principal, group_key, event_type, key, payload_size_bytes, priority, occurred_at, created_at,
       state, next_attempt_at, attempt_count, crash_count, last_attempt_at, last_error_code, last_error_message, claimed_by,
       lease_expires_at, delivered_at, failed_at, dlq_reason
  from carrick.entry
 where id = any(%(ids)s::uuid[])
