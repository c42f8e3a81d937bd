-- The sections where a user may write, or could before they must sign in again.
select osm_sections from carrick_user_credentials
where osm_user_id = :osm_user_id and can_write
