-- The contact that an identity belongs to; always a living one.
select contact_id from carrick_contact_identities
 where tenant_id = :tenant and type = :type and value_normalised = :normalised
