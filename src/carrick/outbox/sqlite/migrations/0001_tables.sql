-- The engine's tables. An entry is one row of `carrick_record` (what was put; never changed) and is, at any moment, in
-- exactly one of two places: `carrick_work` (live: waiting, or claimed when it has a batch_id) or `carrick_ended`
-- (delivered or dead). Unlike on PostgreSQL nothing moves at a claim: there is one writer and there are no dead rows, so
-- setting batch_id in place is cheapest, and a group is held when one of its rows has a batch_id.
-- Times are microseconds since 1970 (UTC).

create table carrick_clock_shift (
  one          integer primary key check (one = 1),
  microseconds integer not null default 0
) strict;
insert into carrick_clock_shift (one) values (1);

-- The one clock of the outbox: every time in it comes from here. Its steps are milliseconds.
create view carrick_clock as
select cast((julianday('now') - 2440587.5) * 86400000000.0 as integer)
       + (select microseconds from carrick_clock_shift) as now;

create table carrick_channel (
  name                 text primary key
                       check (name glob '[A-Za-z0-9]*' and name not glob '*[^A-Za-z0-9_.:-]*' and length(name) <= 100),
  mode                 text not null default 'stream' check (mode in ('stream', 'ordered', 'coalesce')),
  one_tenant           integer not null default 0 check (one_tenant in (0, 1)),
  fair                 integer not null default 1 check (fair in (0, 1)),
  batch_rows           integer not null default 100 check (batch_rows between 1 and 10000),
  batch_bytes          integer not null default 1048576 check (batch_bytes between 1 and 1073741824),
  lease_seconds        integer not null default 120 check (lease_seconds between 1 and 86400),
  max_attempts         integer not null default 10 check (max_attempts between 1 and 1000),
  backoff_base_seconds real not null default 1 check (backoff_base_seconds between 0.001 and 86400),
  backoff_cap_seconds  real not null default 300 check (backoff_cap_seconds between 0.001 and 2678400),
  max_payload_bytes    integer not null default 1048576 check (max_payload_bytes between 2 and 268435456),
  max_backlog_bytes    integer check (max_backlog_bytes > 0),
  on_full              text not null default 'reject' check (on_full in ('reject', 'evict')),
  retention_days       real not null default 7 check (retention_days between 0 and 36500),
  dead_retention_days  real not null default 30 check (dead_retention_days between 0 and 36500),
  remember_keys_days   real not null default 0 check (remember_keys_days between 0 and 36500),
  said                 text default '', -- the options that its declarations have said, null: all
  declared_at          integer not null default (cast((julianday('now') - 2440587.5) * 86400000000.0 as integer)),
  last_error_at        integer,
  check (backoff_base_seconds <= backoff_cap_seconds)
) strict, without rowid;

-- What an outcome does to a claimed entry: the same rows as transitions.py.
create table carrick_transition (
  outcome        text primary key,
  next_state     text not null check (next_state in ('pending', 'delivered', 'dead')),
  spends_attempt integer not null check (spends_attempt in (0, 1)),
  freezes        integer not null check (freezes in (0, 1))
) strict, without rowid;
insert into carrick_transition (outcome, next_state, spends_attempt, freezes) values
  ('delivered', 'delivered', 1, 0),
  ('duplicate', 'delivered', 1, 0),
  ('retry',     'pending',   1, 0),
  ('unsure',    'pending',   1, 1),
  ('rejected',  'dead',      1, 0),
  ('released',  'pending',   0, 0);

-- id: a UUIDv7 when not given. created_at: 0 means now, and is filled in by the trigger of 0002. seq: SQLite gives one more
-- than the highest there is, and the row of the highest is never removed, so no number is used twice (prune_newest.sql);
-- AUTOINCREMENT would promise the same for one page more to write at every put.
create table carrick_record (
  seq                integer primary key,
  id                 text not null unique default (
                       printf('%08x-%04x-7%03x-%04x-%012x',
                              cast((julianday('now') - 2440587.5) * 86400000.0 as integer) >> 16,
                              cast((julianday('now') - 2440587.5) * 86400000.0 as integer) & 65535,
                              random() & 4095, 32768 | (random() & 16383), random() & 281474976710655)),
  channel            text not null,
  tenant_id          text not null default '' check (length(tenant_id) <= 255),
  principal          text check (length(principal) <= 255),
  group_key          text check (length(group_key) <= 255),
  event_type         text not null check (length(event_type) between 1 and 255),
  key                text check (length(key) <= 255),
  payload            text not null check (json_valid(payload)),
  headers            text check (headers is null or json_valid(headers)),
  payload_size_bytes integer not null generated always as (length(cast(payload as blob))) stored,
  priority           integer not null default 0 check (priority between -1000 and 1000),
  traceparent        text check (length(traceparent) <= 255),
  occurred_at        integer,
  created_at         integer not null default 0,
  delay_seconds      real check (delay_seconds between 0 and 31622400),
  max_wait_seconds   real check (max_wait_seconds between 0 and 31622400)
) strict;
create unique index carrick_record_key on carrick_record (channel, tenant_id, key) where key is not null;

-- Live entries. rank = due - priority * 10 minutes: the order of claims. special: comes back apart (suspected of a
-- crash, or part of a frozen batch; see carrick_trouble). evictable: its channel is bounded and makes room by evicting.
create table carrick_work (
  seq         integer primary key,
  id          text not null,
  channel     text not null,
  tenant_id   text not null,
  principal   text,
  group_key   text,
  size        integer not null,
  priority    integer not null,
  due         integer not null,
  rank        integer not null,
  max_wait_at integer,
  delayed     integer not null default 0 check (delayed in (0, 1)),
  troubled    integer not null default 0 check (troubled in (0, 1)),
  special     integer not null default 0 check (special in (0, 1)),
  evictable   integer not null default 0 check (evictable in (0, 1)),
  batch_id    integer,
  check (troubled or not special)
) strict;
create index carrick_work_rank on carrick_work (channel, tenant_id, rank, seq) where batch_id is null;
create index carrick_work_group on carrick_work (channel, tenant_id, group_key, seq) where group_key is not null;
create index carrick_work_special on carrick_work (channel, due, seq) where special = 1 and batch_id is null;
create index carrick_work_low on carrick_work (channel) where priority < 0 and batch_id is null;
create index carrick_work_evictable on carrick_work (channel, rank, seq) where evictable = 1 and batch_id is null;
create index carrick_work_batch on carrick_work (batch_id) where batch_id is not null;
create index carrick_work_held on carrick_work (channel, tenant_id, group_key)
  where batch_id is not null and group_key is not null;

-- What went wrong with live entries: exists only for those that did not go through at once.
create table carrick_trouble (
  seq                integer primary key,
  attempt_count      integer not null default 0,
  crash_count        integer not null default 0,
  last_attempt_at    integer,
  last_error_code    text,
  last_error_message text,
  intent             text check (intent is null or json_valid(intent)),
  batch_cap          integer check (batch_cap >= 1),
  frozen_batch       text
) strict;
create index carrick_trouble_frozen on carrick_trouble (frozen_batch) where frozen_batch is not null;

-- One row per claimed batch. units: entries, or groups when coalesced. There are only as many rows as workers have batches
-- in hand, so that reading all of them is cheaper than keeping indexes: each index is a page more to write at every claim.
create table carrick_lease (
  token      text not null,
  batch_id   integer not null,
  channel    text not null,
  owner      text not null,
  claimed_at integer not null,
  expires_at integer not null,
  units      integer not null,
  troubled   integer not null check (troubled in (0, 1)),
  intent     text check (intent is null or json_valid(intent)),
  noted      text check (noted is null or json_type(noted) = 'array'), -- what the intent is about; null: all
  primary key (token, batch_id)
) strict, without rowid;

create table carrick_ended (
  seq                integer primary key,
  channel            text not null,
  state              text not null check (state in ('delivered', 'dead')),
  ended_at           integer not null,
  attempt_count      integer not null,
  crash_count        integer not null default 0,
  last_error_code    text,
  last_error_message text,
  dlq_reason         text,
  check ((state = 'dead') = (dlq_reason is not null))
) strict;
create index carrick_ended_delivered on carrick_ended (channel, ended_at) where state = 'delivered';
create index carrick_ended_dead on carrick_ended (channel, ended_at, seq) where state = 'dead';

-- A gate that stays closed until somebody opens it has the largest number there is.
create table carrick_gate (
  channel              text not null,
  scope                text not null check (scope = '*' or scope glob 'tenant:?*' or scope glob 'principal:?*'),
  closed_at            integer not null,
  closed_until         integer not null,
  reason               text not null,
  consecutive_failures integer not null default 0,
  closed_by            text not null default 'person' check (closed_by in ('person', 'destination', 'failures')), -- a probe: failures
  primary key (channel, scope)
) strict, without rowid;

-- What one replica at a time does for all, and until when it is that one.
create table carrick_duty (
  name  text primary key,
  owner text not null,
  until integer not null
) strict, without rowid;

-- The tenant served last, where a claim could not serve all that wait. Claims of fresh entries take turns among themselves.
create table carrick_turn (
  channel   text not null,
  fresh     integer not null,
  tenant_id text not null,
  primary key (channel, fresh)
) strict, without rowid;

-- Live bytes of bounded channels; the triggers of 0002 keep a row exactly for those.
create table carrick_backlog (
  channel text primary key,
  bytes   integer not null
) strict, without rowid;

create table carrick_remembered_key (
  channel      text not null,
  tenant_id    text not null,
  key          text not null,
  id           text not null,
  state        text not null check (state in ('delivered', 'dead')),
  content_hash blob not null,
  forget_at    integer not null,
  primary key (channel, tenant_id, key)
) strict, without rowid;
create index carrick_remembered_key_forget on carrick_remembered_key (channel, forget_at);
