-- Shuts a device out. Guarded by the owner, where one is named.
update carrick_devices set revoked_at = (select now from carrick_clock), token_digest = null
where id = :id and (:osm_user_id is null or osm_user_id = :osm_user_id) and revoked_at is null
returning id, client_id, name, osm_user_id, section_id, term_id, term_checked_at, term_end_date, created_at,
       last_used_at, revoked_at
