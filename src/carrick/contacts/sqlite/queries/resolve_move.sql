-- The identities of a contact that is merged go to the survivor.
update carrick_contact_identities set contact_id = :survivor where contact_id = :loser
