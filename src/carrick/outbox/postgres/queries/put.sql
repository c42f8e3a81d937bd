-- Puts one entry in the caller's transaction; a problem is a value, so the transaction stays usable.
select id, created, state, problem
  from carrick._put(%(channel)s::text, %(event_type)s::text, %(payload)s::json, %(key)s::text, %(tenant_id)s::text,
                    %(group_key)s::text, %(principal)s::text, %(priority)s::int, %(headers)s::jsonb,
                    %(occurred_at)s::timestamptz, %(delay_seconds)s::double precision,
                    %(max_wait_seconds)s::double precision, %(traceparent)s::text, null, null)
