-- What a sign-in gave. Ends a revocation, and any refresh under way: its tokens are older.
insert into carrick_user_credentials as c
  (osm_user_id, osm_user_name, osm_email, osm_access_token, osm_refresh_token, osm_token_expiry, created_at, updated_at)
select :osm_user_id, :osm_user_name, :osm_email, :osm_access_token, :osm_refresh_token, now + :seconds * 1000000,
       now, now
from carrick_clock
where true
on conflict (osm_user_id) do update set
  osm_user_name = excluded.osm_user_name, osm_email = excluded.osm_email,
  osm_access_token = excluded.osm_access_token, osm_refresh_token = excluded.osm_refresh_token,
  osm_token_expiry = excluded.osm_token_expiry, generation = c.generation + 1,
  refreshing_by = null, refresh_ends_at = null, revoked_at = null, updated_at = excluded.updated_at
returning generation
