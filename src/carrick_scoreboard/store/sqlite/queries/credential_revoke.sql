-- OSM no longer accepts these tokens. Guarded by the generation: newer ones may be good.
update carrick_user_credentials
set revoked_at = (select now from carrick_clock), refreshing_by = null, refresh_ends_at = null
where osm_user_id = :osm_user_id and generation = :generation and revoked_at is null
returning osm_user_id
