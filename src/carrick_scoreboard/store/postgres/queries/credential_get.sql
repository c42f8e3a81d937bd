-- One user's credential; and what time it is.
select osm_user_id, osm_user_name, osm_email, osm_access_token, osm_refresh_token, osm_token_expiry, generation,
       refreshing_by, refresh_ends_at, revoked_at, created_at, updated_at, last_used_at, carrick.clock() as now_at
from carrick.user_credentials where osm_user_id = %(osm_user_id)s
