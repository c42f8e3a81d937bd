-- OSM no longer accepts these tokens. Guarded by the generation: newer ones may be good.
update carrick.user_credentials
set revoked_at = carrick.clock(), refreshing_by = null, refresh_ends_at = null
where osm_user_id = %(osm_user_id)s and generation = %(generation)s and revoked_at is null
returning osm_user_id
