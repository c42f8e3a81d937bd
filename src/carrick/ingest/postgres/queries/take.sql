-- Takes a batch: everything it writes, in one round trip and one transaction.
select replayed, stored, new_ids
  from carrick.ingest_batch(%(tenant_id)s::text, %(edge_id)s::text, %(event_id)s::text[], %(event_type)s::text[],
                            %(payload)s::text[], %(occurred_at)s::timestamptz[], %(trace_id)s::text[], %(extra)s::text[],
                            %(signature)s::bytea, %(channel)s::text, %(id)s::uuid[],
                            %(group_key)s::text[], %(headers)s::text[], %(traceparent)s::text[])
