-- Whether the contacts of this tenant's ingested events are resolved on arrival.
select 1 from carrick.contact_tenants where tenant_id = %(tenant)s::text
