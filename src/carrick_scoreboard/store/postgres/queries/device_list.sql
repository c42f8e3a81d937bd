-- The devices that a user has let in and not revoked.
select id, client_id, name, osm_user_id, section_id, term_id, term_checked_at, term_end_date, created_at,
       last_used_at, revoked_at
from carrick.devices where osm_user_id = %(osm_user_id)s and revoked_at is null order by id
