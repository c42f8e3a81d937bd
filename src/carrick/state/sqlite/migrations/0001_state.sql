-- Shared state of all replicas; docs/decisions/0008-shared-state.md. Every value ends by itself. To look at them:
-- select key, cast(value as text), datetime(ends_at / 1000000, 'unixepoch') from carrick_state_item order by key;
create table carrick_state_item (
  key     text not null primary key check (length(key) between 1 and 512),
  value   blob not null,
  ends_at integer not null
) strict, without rowid;
create index carrick_state_item_ends_at on carrick_state_item (ends_at);

-- The last messages, for subscribers that see that the file was written to. Numbers are never used again.
create table carrick_state_message (
  id    integer primary key autoincrement,
  topic text not null,
  text  text not null
) strict;
