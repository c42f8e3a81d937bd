-- Puts one entry in the caller's transaction; a problem is a value, so the transaction stays usable. The answer is one text
-- of (id, created, state, problem): as a table it would be stored before it is sent, for a tenth of the time of a put.
select carrick._put(%(channel)s::text, %(event_type)s::text, %(payload)s::json, %(key)s::text, %(tenant_id)s::text,
                    %(group_key)s::text, %(principal)s::text, %(priority)s::int, %(headers)s::jsonb,
                    %(occurred_at)s::timestamptz, %(delay_seconds)s::double precision,
                    %(max_wait_seconds)s::double precision, %(traceparent)s::text, null, %(id)s::uuid)::text
