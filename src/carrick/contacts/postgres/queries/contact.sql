-- One contact, a tombstone as well; `living` is what it has become.
select id, tenant_id, traits::text, created_at, updated_at, merged_into, merged_at, carrick.living_contact(tenant_id, id)
  from carrick.contacts where tenant_id = %(tenant)s::text and id = %(contact)s::uuid
