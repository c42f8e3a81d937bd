-- What a refresh gave. Guarded by the generation: a sign-in meanwhile gave newer ones.
update carrick_user_credentials
set osm_access_token = :osm_access_token, osm_refresh_token = :osm_refresh_token,
    osm_token_expiry = (select now from carrick_clock) + :seconds * 1000000,
    generation = generation + 1, refreshing_by = null, refresh_ends_at = null,
       updated_at = (select now from carrick_clock)
where osm_user_id = :osm_user_id and generation = :generation
returning generation
