-- From now on they are not.
delete from carrick_contact_tenants where tenant_id = :tenant returning tenant_id
