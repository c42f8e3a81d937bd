-- Another name. Guarded by the owner.
update carrick.devices set name = %(name)s
where id = %(id)s and osm_user_id = %(osm_user_id)s and revoked_at is null
returning id, client_id, name, osm_user_id, section_id, term_id, term_checked_at, term_end_date, created_at,
       last_used_at, revoked_at
