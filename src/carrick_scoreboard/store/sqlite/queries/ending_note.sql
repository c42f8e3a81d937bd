-- Writes down that OSM will end a call, as it said last.
insert into carrick_osm_endings (endpoint, said, ends_at, noted_at)
values (:endpoint, :said, :ends_at, (select now from carrick_clock))
on conflict (endpoint) do update set said = excluded.said, ends_at = excluded.ends_at, noted_at = excluded.noted_at
