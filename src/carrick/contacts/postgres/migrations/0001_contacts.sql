-- Contacts and what they are known by. A contact that was merged into an older one stays as a tombstone; its identities
-- move, so an identity always belongs to a living contact. Who is older is told by `seq`.

create table carrick.contacts (
  id          uuid primary key default carrick.uuid7(),
  seq         bigint not null generated always as identity unique,
  tenant_id   varchar(255) collate "C" not null check (tenant_id <> ''),
  traits      jsonb not null default '{}' check (jsonb_typeof(traits) = 'object'),
  created_at  timestamptz not null default carrick.clock(),
  updated_at  timestamptz not null default carrick.clock(),
  merged_into uuid references carrick.contacts (id),
  merged_at   timestamptz,
  unique (tenant_id, id),
  check ((merged_into is null) = (merged_at is null)),
  check (merged_into <> id)
);
comment on column carrick.contacts.merged_into is 'The older contact that this tombstone became part of; it may have become one itself since.';
create index contacts_merged_into on carrick.contacts (merged_into) where merged_into is not null;

-- One spelling per identity. Only the letters A to Z are lower-cased, whatever the database's locale: beyond them the lower case
-- depends on language and on the version of Unicode, and this must agree with contacts/identity.py for ever.
create function carrick._normalised(p_type text, p_value text) returns text
  language sql immutable
  as $$ select case p_type when 'email' then lower(btrim(p_value, E' \t\n\r\f\v') collate "C") else p_value end $$;

create table carrick.contact_identities (
  tenant_id        varchar(255) collate "C" not null,
  contact_id       uuid not null,
  type             text collate "C" not null check (type in ('external_id', 'email', 'phone', 'anonymous_id')),
  value            text collate "C" not null check (char_length(value) between 1 and 320),
  value_normalised text collate "C" not null generated always as (carrick._normalised(type, value)) stored,
  created_at       timestamptz not null default carrick.clock(),
  primary key (tenant_id, type, value_normalised),
  foreign key (tenant_id, contact_id) references carrick.contacts (tenant_id, id) on delete cascade,
  check (type <> 'phone' or value ~ '^\+[1-9][0-9]{6,14}$')
);
comment on table carrick.contact_identities is 'What contacts are known by; one contact per tenant, type and normalised value.';
create index contact_identities_contact on carrick.contact_identities (contact_id);
create unique index uniq_identity_external on carrick.contact_identities (tenant_id, type, value) where type = 'external_id';
-- In collation "C", as the column is, lower() changes A to Z only.
create unique index uniq_identity_email_lower on carrick.contact_identities (tenant_id, type, lower(value)) where type = 'email';
create unique index one_external_id on carrick.contact_identities (contact_id) where type = 'external_id';

create table carrick.contact_conflicts (
  tenant_id    varchar(255) collate "C" not null,
  external_id  text collate "C" not null,
  other        text collate "C" not null,
  announced_at timestamptz not null default carrick.clock(),
  primary key (tenant_id, external_id, other),
  check (external_id < other)
);
comment on table carrick.contact_conflicts is 'Pairs of external ids that events have tied together; each pair is announced once.';

create table carrick.contact_tenants (
  tenant_id    varchar(255) collate "C" primary key check (tenant_id <> ''),
  turned_on_at timestamptz not null default carrick.clock()
);
comment on table carrick.contact_tenants is 'Tenants whose ingested events have their contact resolved on arrival.';

create type carrick._identity as (type text, value text, value_normalised text);
