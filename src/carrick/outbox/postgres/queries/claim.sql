-- Takes due entries. The known tenants and marks are hints where an earlier scan left off; see 0003_pick.sql.
select id, seq, channel, tenant_id, principal, group_key, event_type, key, payload, headers, payload_size_bytes, priority,
       traceparent, occurred_at, created_at, attempt_count, crash_count, intent, next_attempt_at, lease_expires_at,
       date_part('epoch', lease_expires_at - claimed_at), probe
  from carrick._claim(%(channel)s::text, %(owner)s::text, %(max_rows)s::int, %(max_bytes)s::int, %(lease_seconds)s::int,
                      %(tenant)s::text, %(token)s::uuid, %(known)s::text[], %(mark_ranks)s::timestamptz[],
                      %(mark_seqs)s::bigint[], %(fresh_seconds)s::float8)
