-- All credentials, without what is secret.
select osm_user_id, osm_user_name, osm_token_expiry, generation, revoked_at, created_at, updated_at, last_used_at
from carrick.user_credentials order by osm_user_id
