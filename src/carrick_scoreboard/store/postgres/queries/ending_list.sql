-- The calls that OSM will end, the next one first.
select endpoint, said, ends_at, noted_at from carrick.osm_endings order by ends_at is null, ends_at, endpoint
