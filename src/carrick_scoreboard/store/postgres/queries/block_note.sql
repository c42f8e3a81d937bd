-- Writes down a block, unless one stands already. Guarded by the index of which there can be one.
insert into carrick.osm_blocks (header, blocked_at) values (%(header)s, carrick.clock())
on conflict do nothing
returning id
