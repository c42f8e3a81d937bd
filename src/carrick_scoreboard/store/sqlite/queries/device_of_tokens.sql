-- The devices with these tokens (a JSON list of digests), without those that were revoked.
select token_digest, id, client_id, name, osm_user_id, section_id, term_id, term_checked_at, term_end_date, created_at, last_used_at, revoked_at
from carrick_devices where token_digest in (select value from json_each(:token_digests)) and revoked_at is null
