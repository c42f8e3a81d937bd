-- A device that a person let in; it has no token yet.
insert into carrick_devices (client_id, name, osm_user_id, section_id, term_id, term_checked_at, term_end_date,
       created_at)
select :client_id, :name, :osm_user_id, :section_id, :term_id, now, :term_end_date, now from carrick_clock
where true
returning id, client_id, name, osm_user_id, section_id, term_id, term_checked_at, term_end_date, created_at,
       last_used_at, revoked_at
