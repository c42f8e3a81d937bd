-- What a refresh gave. Guarded by the generation: a sign-in meanwhile gave newer ones.
-- Ends a revocation of the same generation: who came second with a token that rotates was refused for that alone.
update carrick.user_credentials
set osm_access_token = %(osm_access_token)s, osm_refresh_token = %(osm_refresh_token)s,
    osm_token_expiry = carrick.clock() + make_interval(secs => %(seconds)s),
    generation = generation + 1, refreshing_by = null, refresh_ends_at = null, revoked_at = null,
    updated_at = carrick.clock()
where osm_user_id = %(osm_user_id)s and generation = %(generation)s
returning generation
