-- Ends a link. Guarded by the section.
update carrick.board_links set revoked_at = carrick.clock()
where token_digest = %(token_digest)s and section_id = %(section_id)s and revoked_at is null
returning section_id
