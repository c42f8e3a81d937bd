-- The device with that token, unless it was revoked.
select id, client_id, name, osm_user_id, section_id, term_id, term_checked_at, term_end_date, created_at,
       last_used_at, revoked_at
from carrick_devices where token_digest = :token_digest and revoked_at is null
