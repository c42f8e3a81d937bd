-- What a contact is known by: the strongest first, then the oldest. The contact was found by its tenant.
select type, value, value_normalised from carrick_contact_identities
 where contact_id = :contact
 order by case type when 'external_id' then 1 when 'email' then 2 when 'phone' then 3 else 4 end, created_at, value_normalised
