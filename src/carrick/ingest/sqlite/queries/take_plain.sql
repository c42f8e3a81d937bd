-- Stores one event that has neither a trace nor further fields, as most have, unless it is there: as take, with less to bind.
insert into carrick_inbox (tenant_id, edge_id, received_at, event_id, event_type, occurred_at, payload)
values (?1, ?2, ?3, ?, ?, ?, ?)
on conflict do nothing
