-- What a sign-in gave. Ends a revocation, and any refresh under way: its tokens are older. No row when the tokens that
-- are there may write and the new ones may not: a display that signs in takes nothing away from its owner.
insert into carrick.user_credentials as c
  (osm_user_id, osm_user_name, osm_email, osm_access_token, osm_refresh_token, osm_token_expiry, can_write, osm_sections,
   created_at, updated_at)
values (%(osm_user_id)s, %(osm_user_name)s, %(osm_email)s, %(osm_access_token)s, %(osm_refresh_token)s,
        carrick.clock() + make_interval(secs => %(seconds)s), %(can_write)s, %(osm_sections)s::jsonb,
        carrick.clock(), carrick.clock())
on conflict (osm_user_id) do update set
  osm_user_name = excluded.osm_user_name, osm_email = excluded.osm_email,
  osm_access_token = excluded.osm_access_token, osm_refresh_token = excluded.osm_refresh_token,
  osm_token_expiry = excluded.osm_token_expiry, generation = c.generation + 1,
  can_write = excluded.can_write, osm_sections = excluded.osm_sections,
  refreshing_by = null, refresh_ends_at = null, revoked_at = null, updated_at = excluded.updated_at
where excluded.can_write or not c.can_write or c.revoked_at is not null
returning generation
