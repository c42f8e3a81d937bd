-- The block that stands, if one does.
select id, blocked_at, header from carrick.osm_blocks where cleared_at is null
