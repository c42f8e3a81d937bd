-- The sealed tokens of all users from one on, so many at a time.
select osm_user_id, osm_access_token, osm_refresh_token, generation
from carrick_user_credentials where osm_user_id > :after order by osm_user_id limit :limit
