-- From now on the contacts of this tenant's ingested events are resolved on arrival.
insert into carrick_contact_tenants (tenant_id, turned_on_at) select :tenant, now from carrick_clock where true
on conflict do nothing returning tenant_id
