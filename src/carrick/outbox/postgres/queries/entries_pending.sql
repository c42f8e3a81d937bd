-- Waiting entries behind a given one, in the order in which they were put.
select id, seq, channel, tenant_id, principal, group_key, event_type, key, payload_size_bytes, priority, occurred_at, created_at,
       state, next_attempt_at, attempt_count, crash_count, last_attempt_at, last_error_code, last_error_message, claimed_by,
       lease_expires_at, delivered_at, failed_at, dlq_reason, place_at, mine
  from carrick._list_waiting(%(channel)s::text, %(tenant)s::text, %(after_seq)s::bigint, %(rows)s::int)
