-- The scoreboard: how the application stands with OSM, whose credentials it holds, which devices show scores.
-- Secrets are sealed (bytea) or kept as digests (SHA-256, hex).

create table carrick.osm_blocks (
  id         bigint generated always as identity primary key,
  blocked_at timestamptz not null default carrick.clock(),
  header     text not null,
  cleared_at timestamptz,
  cleared_by text,
  reason     text,
  check ((cleared_at is null) = (cleared_by is null)),
  check ((cleared_at is null) = (reason is null))
);
comment on table carrick.osm_blocks is 'One row per block of the whole application by OSM; the one without an end stands.';
create unique index osm_block_standing on carrick.osm_blocks ((true)) where cleared_at is null;

create table carrick.osm_endings (
  endpoint text collate "C" primary key,
  said     text not null,
  ends_at  timestamptz,
  noted_at timestamptz not null
);
comment on table carrick.osm_endings is 'Calls that OSM will no longer answer, as it said last; without an end where it named no date.';

create table carrick.audit (
  id      bigint generated always as identity primary key,
  done_at timestamptz not null default carrick.clock(),
  actor   text not null check (char_length(actor) between 1 and 255),
  action  text not null check (char_length(action) between 1 and 64),
  subject text not null check (char_length(subject) <= 255),
  detail  jsonb not null default '{}' check (jsonb_typeof(detail) = 'object')
);
comment on table carrick.audit is 'What people did that others may ask about later.';

create table carrick.user_credentials (
  osm_user_id       bigint primary key check (osm_user_id > 0),
  osm_user_name     text not null,
  osm_email         text not null default '',
  osm_access_token  bytea not null,
  osm_refresh_token bytea not null,
  osm_token_expiry  timestamptz not null,
  generation        bigint not null default 1,
  refreshing_by     text,
  refresh_ends_at   timestamptz,
  revoked_at        timestamptz,
  created_at        timestamptz not null default carrick.clock(),
  updated_at        timestamptz not null default carrick.clock(),
  last_used_at      timestamptz,
  check ((refreshing_by is null) = (refresh_ends_at is null))
);
comment on table carrick.user_credentials is 'One row per OSM user, shared by all their sessions and devices; tokens are sealed.';
comment on column carrick.user_credentials.generation is 'Counts the tokens: who refreshes names the one it replaces.';

create table carrick.device_clients (
  client_id   text collate "C" primary key check (char_length(client_id) between 1 and 255),
  comment     text not null default '',
  email       text not null default '',
  replaced_by text collate "C" references carrick.device_clients (client_id),
  created_at  timestamptz not null default carrick.clock(),
  disabled_at timestamptz
);
comment on table carrick.device_clients is 'Device applications that may ask for a sign-in.';

create table carrick.devices (
  id              bigint generated always as identity primary key,
  token_digest    text collate "C" unique check (char_length(token_digest) = 64),
  client_id       text collate "C" not null references carrick.device_clients (client_id),
  name            text not null check (char_length(name) between 1 and 100),
  osm_user_id     bigint not null,
  section_id      bigint not null check (section_id > 0),
  term_id         bigint,
  term_checked_at timestamptz,
  term_end_date   date,
  created_at      timestamptz not null default carrick.clock(),
  last_used_at    timestamptz,
  revoked_at      timestamptz
);
comment on column carrick.devices.token_digest is 'Null until the device has fetched its token.';
create index devices_user on carrick.devices (osm_user_id);
create index devices_section on carrick.devices (section_id);

create table carrick.device_codes (
  id             bigint generated always as identity primary key,
  code_digest    text collate "C" not null unique check (char_length(code_digest) = 64),
  user_code      text collate "C" not null unique check (char_length(user_code) = 8),
  client_id      text collate "C" not null references carrick.device_clients (client_id) on delete cascade,
  status         text not null default 'pending' check (status in ('pending', 'approved', 'denied', 'fetched')),
  address        text not null,
  country        text not null default '',
  poll_seconds   int not null check (poll_seconds > 0),
  device_id      bigint references carrick.devices (id) on delete cascade,
  created_at     timestamptz not null default carrick.clock(),
  expires_at     timestamptz not null,
  last_polled_at timestamptz,
  check ((status in ('approved', 'fetched')) = (device_id is not null))
);
comment on table carrick.device_codes is 'Sign-ins of devices that are under way.';
create index device_codes_expires on carrick.device_codes (expires_at);

create table carrick.section_settings (
  section_id    bigint primary key check (section_id > 0),
  patrol_colors jsonb not null default '{}' check (jsonb_typeof(patrol_colors) = 'object'),
  updated_at    timestamptz not null default carrick.clock(),
  updated_by    bigint not null
);
comment on table carrick.section_settings is 'Colours of patrols, by patrol id.';
