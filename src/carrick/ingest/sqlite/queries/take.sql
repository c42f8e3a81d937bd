-- Stores one event, unless it is there; the store repeats the row. PostgreSQL's take is a function that does the whole batch.
insert into carrick_inbox (tenant_id, event_id, event_type, edge_id, trace_id, occurred_at, received_at, extra, payload)
values (?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict do nothing
