-- The link with that token, unless it was revoked.
select section_id, osm_user_id, created_at from carrick_board_links
where token_digest = :token_digest and revoked_at is null
