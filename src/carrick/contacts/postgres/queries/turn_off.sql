-- From now on they are not.
delete from carrick.contact_tenants where tenant_id = %(tenant)s::text returning tenant_id
