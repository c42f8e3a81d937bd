-- What a sign-in gave. Ends a revocation, and any refresh under way: its tokens are older.
insert into carrick.user_credentials as c
  (osm_user_id, osm_user_name, osm_email, osm_access_token, osm_refresh_token, osm_token_expiry, created_at, updated_at)
values (%(osm_user_id)s, %(osm_user_name)s, %(osm_email)s, %(osm_access_token)s, %(osm_refresh_token)s,
        carrick.clock() + make_interval(secs => %(seconds)s), carrick.clock(), carrick.clock())
on conflict (osm_user_id) do update set
  osm_user_name = excluded.osm_user_name, osm_email = excluded.osm_email,
  osm_access_token = excluded.osm_access_token, osm_refresh_token = excluded.osm_refresh_token,
  osm_token_expiry = excluded.osm_token_expiry, generation = c.generation + 1,
  refreshing_by = null, refresh_ends_at = null, revoked_at = null, updated_at = excluded.updated_at
returning generation
