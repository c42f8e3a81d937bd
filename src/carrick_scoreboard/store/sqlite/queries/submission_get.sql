-- The submission of a user with that key.
select id, osm_user_id, key, body_digest, section_id, batch_id, created_at from carrick_score_submissions
where osm_user_id = :osm_user_id and key = :key
