-- Receipts: a request that puts entries under a key of its own is done once, and answered the same way when it comes again.
create table carrick_receipt (
  key       text primary key check (length(key) <= 255),
  body_hash blob not null,
  ids       text not null check (json_valid(ids)),
  made_at   integer not null
) strict, without rowid;
create index carrick_receipt_made_at on carrick_receipt (made_at);
