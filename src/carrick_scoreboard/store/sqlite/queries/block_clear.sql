-- Ends the block that stands; no row where none does.
update carrick_osm_blocks set cleared_at = (select now from carrick_clock), cleared_by = :actor, reason = :reason
where cleared_at is null
returning id, blocked_at, header
