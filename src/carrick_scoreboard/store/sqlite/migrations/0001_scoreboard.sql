-- The scoreboard: how the application stands with OSM, whose credentials it holds, which devices show scores.
-- Times are microseconds since 1970 (UTC). Secrets are sealed (blob) or kept as digests (SHA-256, hex).

-- One row per block of the whole application by OSM; the one without an end stands.
create table carrick_osm_blocks (
  id         integer primary key,
  blocked_at integer not null,
  header     text not null,
  cleared_at integer,
  cleared_by text,
  reason     text,
  check ((cleared_at is null) = (cleared_by is null)),
  check ((cleared_at is null) = (reason is null))
) strict;
create unique index carrick_osm_block_standing on carrick_osm_blocks ((1)) where cleared_at is null;

-- Calls that OSM will no longer answer, as it said last; without an end where it named no date.
create table carrick_osm_endings (
  endpoint text primary key,
  said     text not null,
  ends_at  integer,
  noted_at integer not null
) strict, without rowid;

-- What people did that others may ask about later.
create table carrick_audit (
  id      integer primary key,
  done_at integer not null,
  actor   text not null check (length(actor) between 1 and 255),
  action  text not null check (length(action) between 1 and 64),
  subject text not null check (length(subject) <= 255),
  detail  text not null default '{}' check (json_type(detail) = 'object')
) strict;

create table carrick_user_credentials (
  osm_user_id       integer primary key check (osm_user_id > 0),
  osm_user_name     text not null,
  osm_email         text not null default '',
  osm_access_token  blob not null,
  osm_refresh_token blob not null,
  osm_token_expiry  integer not null,
  generation        integer not null default 1,
  refreshing_by     text,
  refresh_ends_at   integer,
  revoked_at        integer,
  created_at        integer not null,
  updated_at        integer not null,
  last_used_at      integer,
  check ((refreshing_by is null) = (refresh_ends_at is null))
) strict;

-- Device applications that may ask for a sign-in.
create table carrick_device_clients (
  client_id   text primary key check (length(client_id) between 1 and 255),
  comment     text not null default '',
  email       text not null default '',
  replaced_by text references carrick_device_clients (client_id),
  created_at  integer not null,
  disabled_at integer
) strict, without rowid;

-- Displays. The token is made when the device fetches it; until then there is none.
create table carrick_devices (
  id              integer primary key autoincrement,
  token_digest    text unique check (length(token_digest) = 64),
  client_id       text not null references carrick_device_clients (client_id),
  name            text not null check (length(name) between 1 and 100),
  osm_user_id     integer not null,
  section_id      integer not null check (section_id > 0),
  term_id         integer,
  term_checked_at integer,
  term_end_date   text,
  created_at      integer not null,
  last_used_at    integer,
  revoked_at      integer
) strict;
create index carrick_devices_user on carrick_devices (osm_user_id);
create index carrick_devices_section on carrick_devices (section_id);

-- Sign-ins of devices that are under way.
create table carrick_device_codes (
  id             integer primary key autoincrement,
  code_digest    text not null unique check (length(code_digest) = 64),
  user_code      text not null unique check (length(user_code) = 8),
  client_id      text not null references carrick_device_clients (client_id) on delete cascade,
  status         text not null default 'pending' check (status in ('pending', 'approved', 'denied', 'fetched')),
  address        text not null,
  country        text not null default '',
  poll_seconds   integer not null check (poll_seconds > 0),
  device_id      integer references carrick_devices (id) on delete cascade,
  created_at     integer not null,
  expires_at     integer not null,
  last_polled_at integer,
  check ((status in ('approved', 'fetched')) = (device_id is not null))
) strict;
create index carrick_device_codes_expires on carrick_device_codes (expires_at);

-- Colours of patrols, by patrol id.
create table carrick_section_settings (
  section_id    integer primary key check (section_id > 0),
  patrol_colors text not null default '{}' check (json_type(patrol_colors) = 'object'),
  updated_at    integer not null,
  updated_by    integer not null
) strict;
