-- Another section. Guarded by the owner; the term belongs to the section, so it is unknown again.
update carrick_devices set section_id = :section_id, term_id = null, term_checked_at = null, term_end_date = null
where id = :id and osm_user_id = :osm_user_id and revoked_at is null
returning id, client_id, name, osm_user_id, section_id, term_id, term_checked_at, term_end_date, created_at,
       last_used_at, revoked_at
