-- Moves the end of a lease; fenced by its token.
update carrick_lease set expires_at = :expires_at where token = :token
