-- The inbox: events that came from forwarders, each once per tenant and event id. Times in microseconds since 1970.
-- Rows are inserted and, after their retention, deleted; nothing is ever updated.

create table carrick_inbox (
  tenant_id   text not null check (length(tenant_id) <= 255),
  event_id    text not null check (length(event_id) between 1 and 255),
  event_type  text not null check (length(event_type) between 1 and 255),
  edge_id     text check (length(edge_id) <= 255),
  trace_id    text check (length(trace_id) <= 255),
  occurred_at integer,
  received_at integer not null,
  extra       text check (extra is null or json_valid(extra)),
  payload     text not null check (json_valid(payload)),
  primary key (tenant_id, event_id)
) strict;

-- Signatures of batches that were taken: the same request again is a replay.
create table carrick_ingest_signature (
  signature blob primary key,
  seen_at   integer not null
) strict, without rowid;
create index carrick_ingest_signature_seen on carrick_ingest_signature (seen_at);
