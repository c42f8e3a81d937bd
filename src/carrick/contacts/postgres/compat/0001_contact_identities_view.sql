-- public.contact_identities for those who write identities themselves (`--compat`). An insert makes the contact if there is none with that id;
-- the unique indexes of the table below hold. Updates and deletes go straight through.

create view public.contact_identities as
select tenant_id, contact_id, type, value, value_normalised, created_at from carrick.contact_identities;

create function carrick._insert_identity() returns trigger
  language plpgsql as $$
begin
  new.contact_id := coalesce(new.contact_id, carrick.uuid7());
  insert into carrick.contacts (id, tenant_id) values (new.contact_id, new.tenant_id) on conflict do nothing;
  insert into carrick.contact_identities (tenant_id, contact_id, type, value)
  values (new.tenant_id, new.contact_id, new.type, new.value);
  return new;
end $$;

create trigger insert_identity instead of insert on public.contact_identities
  for each row execute function carrick._insert_identity();
