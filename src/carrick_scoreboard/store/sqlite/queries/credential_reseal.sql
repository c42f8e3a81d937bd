-- The same tokens under another key. Guarded by the generation: they may have been replaced meanwhile.
update carrick_user_credentials set osm_access_token = :osm_access_token, osm_refresh_token = :osm_refresh_token
where osm_user_id = :osm_user_id and generation = :generation
returning osm_user_id
