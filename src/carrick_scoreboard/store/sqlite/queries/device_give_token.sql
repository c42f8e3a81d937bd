-- The device's token from now on. Guarded: the one before was never used.
update carrick_devices set token_digest = :token_digest
where id = :id and revoked_at is null and last_used_at is null
returning id, client_id, name, osm_user_id, section_id, term_id, term_checked_at, term_end_date, created_at,
       last_used_at, revoked_at
