-- The sections where a user may write; none when they may not, or must sign in again.
select osm_sections from carrick_user_credentials
where osm_user_id = :osm_user_id and can_write and revoked_at is null
