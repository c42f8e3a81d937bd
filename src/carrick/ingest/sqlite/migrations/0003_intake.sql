-- The intake: which events were stored together, and when. It stands in for an index of the inbox by time of arrival, which had an
-- entry for each event, where this has a row for each batch. Events have a place, in the order of their arrival: those that
-- were stored together stand together.

create table carrick_inbox_placed (
  place       integer primary key,
  tenant_id   text not null,
  event_id    text not null,
  event_type  text not null,
  edge_id     text,
  trace_id    text,
  occurred_at integer,
  received_at integer not null,
  extra       text,
  payload     text not null,
  unique (tenant_id, event_id)
) strict;
insert into carrick_inbox_placed (tenant_id, event_id, event_type, edge_id, trace_id, occurred_at, received_at, extra, payload)
select tenant_id, event_id, event_type, edge_id, trace_id, occurred_at, received_at, extra, payload
  from carrick_inbox order by received_at, tenant_id;
drop table carrick_inbox;
alter table carrick_inbox_placed rename to carrick_inbox;

create table carrick_intake (
  tenant_id   text not null,
  received_at integer not null,
  first_place integer not null,
  last_place  integer not null,
  primary key (tenant_id, received_at, first_place)
) strict, without rowid;
-- For retention. The newest events of a tenant are found by the primary key.
create index carrick_intake_received on carrick_intake (received_at);
insert into carrick_intake (tenant_id, received_at, first_place, last_place)
select tenant_id, received_at, min(place), max(place) from carrick_inbox group by received_at, tenant_id;
