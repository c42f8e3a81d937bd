-- The sections where a user may write, or could before they must sign in again.
select osm_sections::text as osm_sections from carrick.user_credentials
where osm_user_id = %(osm_user_id)s and can_write
