-- Writes down a block, unless one stands already. Guarded by the index of which there can be one.
insert into carrick_osm_blocks (header, blocked_at) values (:header, (select now from carrick_clock))
on conflict do nothing
returning id
