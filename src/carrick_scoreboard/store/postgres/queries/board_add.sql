-- A link to the board of a section.
insert into carrick.board_links (token_digest, section_id, osm_user_id, created_at)
values (%(token_digest)s, %(section_id)s, %(osm_user_id)s, carrick.clock())
