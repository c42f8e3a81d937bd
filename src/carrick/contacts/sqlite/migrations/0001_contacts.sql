-- Contacts and what they are known by, as on PostgreSQL: a merged contact stays as a tombstone, its identities move, `seq` tells
-- who is older. There is one writer, so there are no locks; the rules stand in contacts/sqlite/rules.py.
-- Times are microseconds since 1970 (UTC).

create table carrick_contacts (
  seq         integer primary key,
  id          text not null unique,
  tenant_id   text not null check (length(tenant_id) between 1 and 255),
  traits      text not null default '{}' check (json_type(traits) = 'object'),
  created_at  integer not null,
  updated_at  integer not null,
  merged_into text references carrick_contacts (id),
  merged_at   integer,
  check ((merged_into is null) = (merged_at is null)),
  check (merged_into <> id)
) strict;

create table carrick_contact_identities (
  tenant_id        text not null,
  contact_id       text not null references carrick_contacts (id),
  type             text not null check (type in ('external_id', 'email', 'phone', 'anonymous_id')),
  value            text not null check (length(value) between 1 and 320),
  value_normalised text not null generated always as (
                     case type when 'email' then lower(trim(value, char(32, 9, 10, 13, 12, 11))) else value end) stored,
  created_at       integer not null,
  check (type <> 'phone' or (value glob '+[1-9][0-9]*' and substr(value, 2) not glob '*[^0-9]*'
                             and length(value) between 8 and 16))
) strict;
create unique index carrick_contact_identity on carrick_contact_identities (tenant_id, type, value_normalised);
create index carrick_contact_identities_contact on carrick_contact_identities (contact_id);
create unique index uniq_identity_external on carrick_contact_identities (tenant_id, type, value) where type = 'external_id';
create unique index uniq_identity_email_lower on carrick_contact_identities (tenant_id, type, lower(value)) where type = 'email';
create unique index one_external_id on carrick_contact_identities (contact_id) where type = 'external_id';

-- Pairs of external ids that events have tied together; each pair is announced once.
create table carrick_contact_conflicts (
  tenant_id    text not null,
  external_id  text not null,
  other        text not null,
  announced_at integer not null,
  primary key (tenant_id, external_id, other),
  check (external_id < other)
) strict, without rowid;

-- Tenants whose ingested events have their contact resolved on arrival.
create table carrick_contact_tenants (
  tenant_id    text primary key check (length(tenant_id) between 1 and 255),
  turned_on_at integer not null
) strict, without rowid;
