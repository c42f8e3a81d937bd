-- Ends the block that stands; no row where none does.
update carrick.osm_blocks set cleared_at = carrick.clock(), cleared_by = %(actor)s, reason = %(reason)s
where cleared_at is null
returning id, blocked_at, header
