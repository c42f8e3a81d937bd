-- The submission of a user with that key.
select id, osm_user_id, key, body_digest, section_id, batch_id::text as batch_id,
       created_at from carrick.score_submissions
where osm_user_id = %(osm_user_id)s and key = %(key)s
