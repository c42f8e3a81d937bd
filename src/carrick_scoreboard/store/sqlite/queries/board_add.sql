-- A link to the board of a section.
insert into carrick_board_links (token_digest, section_id, osm_user_id, created_at)
values (:token_digest, :section_id, :osm_user_id, (select now from carrick_clock))
