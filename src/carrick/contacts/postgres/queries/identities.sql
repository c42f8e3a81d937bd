-- What a contact is known by: the strongest first, then the oldest. The contact was found by its tenant.
select type, value, value_normalised from carrick.contact_identities
 where contact_id = %(contact)s::uuid
 order by array_position('{external_id,email,phone,anonymous_id}'::text[], type::text), created_at, value_normalised
