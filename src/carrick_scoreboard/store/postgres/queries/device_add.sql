-- A device that a person let in; it has no token yet.
insert into carrick.devices (client_id, name, osm_user_id, section_id, term_id, term_checked_at, term_end_date,
       created_at)
values (%(client_id)s, %(name)s, %(osm_user_id)s, %(section_id)s, %(term_id)s, carrick.clock(), %(term_end_date)s,
       carrick.clock())
returning id, client_id, name, osm_user_id, section_id, term_id, term_checked_at, term_end_date, created_at,
       last_used_at, revoked_at
