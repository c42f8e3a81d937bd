-- The inbox: events that came from forwarders, each once per tenant and event id.
-- Rows are inserted and, after their retention, deleted; nothing is ever updated.

create table carrick.inbox (
  tenant_id   varchar(255) collate "C" not null,
  event_id    varchar(255) collate "C" not null check (event_id <> ''),
  event_type  varchar(255) not null check (event_type <> ''),
  edge_id     varchar(255),
  trace_id    varchar(255),
  occurred_at timestamptz,
  received_at timestamptz not null,
  extra       json,
  payload     json not null,
  primary key (tenant_id, event_id)
);
comment on table carrick.inbox is 'Events taken by carrick ingest. extra: fields of the event beside its own; payload: the bytes as they were sent.';

create table carrick.ingest_signature (
  signature bytea primary key,
  seen_at   timestamptz not null
);
comment on table carrick.ingest_signature is 'Signatures of batches that were taken: the same request again is a replay.';
create index ingest_signature_seen on carrick.ingest_signature (seen_at);

-- Turned on and off with that of the other tables that hold a tenant's data: carrick.enable_row_security().
create policy carrick_tenant on carrick.inbox
  using (tenant_id = current_setting('carrick.tenant', true)) with check (tenant_id = current_setting('carrick.tenant', true));
