-- From now on the contacts of this tenant's ingested events are resolved on arrival.
insert into carrick.contact_tenants (tenant_id) values (%(tenant)s::text) on conflict do nothing returning tenant_id
