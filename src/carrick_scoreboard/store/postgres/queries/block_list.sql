-- The latest blocks, the newest first.
select id, blocked_at, header, cleared_at, cleared_by, reason from carrick.osm_blocks order by id desc limit %(limit)s
