-- Everybody who is signed in and may write, and where, as their last sign-in said.
select osm_user_id, osm_sections::text as osm_sections from carrick.user_credentials
where revoked_at is null and can_write order by osm_user_id
