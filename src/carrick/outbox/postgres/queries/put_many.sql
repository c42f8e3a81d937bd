-- Puts entries with keys, or into bounded channels, all or none; the rest goes by COPY.
select id, created, state, problem, problem_at
  from carrick._put_many(%(channel)s::text[], %(event_type)s::text[], %(payload)s::text[], %(key)s::text[],
                         %(tenant_id)s::text[], %(group_key)s::text[], %(principal)s::text[], %(priority)s::int[],
                         %(headers)s::text[], %(occurred_at)s::timestamptz[], %(delay_seconds)s::double precision[],
                         %(max_wait_seconds)s::double precision[], %(traceparent)s::text[], %(id)s::uuid[])
