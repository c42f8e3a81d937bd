-- Stores one event, unless it is there; the store repeats the row. Tenant, edge and time of arrival are bound once for all rows.
-- PostgreSQL's take is a function that does the whole batch.
insert into carrick_inbox (tenant_id, edge_id, received_at, event_id, event_type, occurred_at, payload, trace_id, extra)
values (?1, ?2, ?3, ?, ?, ?, ?, ?, ?)
on conflict do nothing
