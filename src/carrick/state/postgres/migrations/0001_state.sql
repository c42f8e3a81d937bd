-- Shared state. One row says which epoch it is and where that epoch's values are; docs/decisions/0008-shared-state.md.
create table carrick.state_epoch (
  one        boolean primary key default true check (one),
  number     bigint not null default 1,
  name       text not null default 'first',
  run        text,
  failures   int not null default 0 check (failures >= 0),
  changed_at timestamptz not null default 'epoch'
);
comment on table carrick.state_epoch is 'One row. run: the Redis process that holds the shared state; null: state_item does.';
insert into carrick.state_epoch default values;

-- Values of epochs in the tables. All of them end: what belongs to an epoch before is removed when its time is up.
create table carrick.state_item (
  epoch   bigint not null,
  key     varchar(512) collate "C" not null,
  value   bytea not null,
  ends_at timestamptz not null,
  primary key (epoch, key)
);
create index state_item_ends_at on carrick.state_item (ends_at);
