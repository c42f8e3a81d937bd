-- The sections where a user may write, as their last sign-in said; none when they may not. Of one who must sign in
-- again, too: their points wait until then.
select osm_sections::text as osm_sections from carrick.user_credentials
where osm_user_id = %(osm_user_id)s and can_write
