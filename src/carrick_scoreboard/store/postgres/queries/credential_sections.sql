-- The sections where a user may write; none when they may not, or must sign in again.
select osm_sections::text as osm_sections from carrick.user_credentials
where osm_user_id = %(osm_user_id)s and can_write and revoked_at is null
