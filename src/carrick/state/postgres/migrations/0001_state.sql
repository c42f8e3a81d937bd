-- Shared state of all replicas; docs/decisions/0008-shared-state.md. Every value ends by itself. To look at them:
-- select key, encode(value, 'escape'), ends_at from carrick.state_item order by key;
create table carrick.state_item (
  key     varchar(512) collate "C" primary key,
  value   bytea not null,
  ends_at timestamptz not null
);
create index state_item_ends_at on carrick.state_item (ends_at);
comment on table carrick.state_item is 'Values that end by themselves: last scores, terms, failures, budgets, locks, notes.';
