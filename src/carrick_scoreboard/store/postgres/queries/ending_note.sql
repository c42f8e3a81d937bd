-- Writes down that OSM will end a call, as it said last.
insert into carrick.osm_endings (endpoint, said, ends_at, noted_at)
values (%(endpoint)s, %(said)s, %(ends_at)s, carrick.clock())
on conflict (endpoint) do update set said = excluded.said, ends_at = excluded.ends_at, noted_at = excluded.noted_at
