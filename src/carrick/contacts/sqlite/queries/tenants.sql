-- The tenants that have turned it on, and since when.
select tenant_id, turned_on_at from carrick_contact_tenants order by tenant_id
