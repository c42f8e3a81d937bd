-- The events of a tenant that came last.
select event_id, event_type, edge_id, occurred_at, received_at from carrick._recent_events(%(tenant_id)s::text, %(limit)s::int)
