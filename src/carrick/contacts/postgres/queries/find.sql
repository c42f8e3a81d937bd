-- The contact that an identity belongs to; always a living one.
select contact_id from carrick.contact_identities
 where tenant_id = %(tenant)s::text and type = %(type)s::text and value_normalised = %(normalised)s::text
