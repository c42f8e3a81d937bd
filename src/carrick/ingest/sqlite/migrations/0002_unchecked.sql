-- The inbox without checks of its own: lengths and JSON are checked once, where a batch is read, and nobody else writes here.
-- Checking again was a third of the cost of a row.

create table carrick_inbox_unchecked (
  tenant_id   text not null,
  event_id    text not null,
  event_type  text not null,
  edge_id     text,
  trace_id    text,
  occurred_at integer,
  received_at integer not null,
  extra       text,
  payload     text not null,
  primary key (tenant_id, event_id)
) strict;
insert into carrick_inbox_unchecked (tenant_id, event_id, event_type, edge_id, trace_id, occurred_at, received_at, extra, payload)
select tenant_id, event_id, event_type, edge_id, trace_id, occurred_at, received_at, extra, payload
  from carrick_inbox order by rowid;
drop table carrick_inbox;
alter table carrick_inbox_unchecked rename to carrick_inbox;
