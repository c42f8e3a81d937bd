-- Gives back a refresh that came to nothing.
update carrick_user_credentials set refreshing_by = null, refresh_ends_at = null
where osm_user_id = :osm_user_id and refreshing_by = :by
