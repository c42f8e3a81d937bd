-- Shared state. One row says which epoch it is and where that epoch's values are; docs/decisions/0008-shared-state.md.
create table carrick_state_epoch (
  one        integer primary key default 1 check (one = 1),
  number     integer not null default 1,
  name       text not null default 'first',
  run        text,
  failures   integer not null default 0 check (failures >= 0),
  changed_at integer not null default 0
) strict;
insert into carrick_state_epoch (one) values (1);

-- Values of epochs in the tables. All of them end: what belongs to an epoch before is removed when its time is up.
create table carrick_state_item (
  epoch   integer not null,
  key     text not null check (length(key) between 1 and 512),
  value   blob not null,
  ends_at integer not null,
  primary key (epoch, key)
) strict, without rowid;
create index carrick_state_item_ends_at on carrick_state_item (ends_at);

-- The last messages, for subscribers that see that the file was written to. Numbers are never used again.
create table carrick_state_message (
  id    integer primary key autoincrement,
  topic text not null,
  text  text not null
) strict;
