-- Receipts: a request that puts entries under a key of its own is done once, and answered the same way when it comes again.
create table carrick.receipt (
  key       varchar(255) primary key,
  body_hash bytea not null,
  ids       uuid[],
  made_at   timestamptz not null default carrick.clock()
);
comment on table carrick.receipt is 'Requests that were done, by their idempotency keys; ids are null only inside the transaction.';
create index receipt_made_at on carrick.receipt (made_at);
