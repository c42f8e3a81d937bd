-- The same tokens under another key. Guarded by the generation: they may have been replaced meanwhile.
update carrick.user_credentials set osm_access_token = %(osm_access_token)s, osm_refresh_token = %(osm_refresh_token)s
where osm_user_id = %(osm_user_id)s and generation = %(generation)s
returning osm_user_id
