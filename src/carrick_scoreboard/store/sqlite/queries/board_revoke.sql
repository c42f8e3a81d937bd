-- Ends a link. Guarded by the section.
update carrick_board_links set revoked_at = (select now from carrick_clock)
where token_digest = :token_digest and section_id = :section_id and revoked_at is null
returning section_id
