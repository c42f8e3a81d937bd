-- A write to OSM is about to be tried; no row when another one of that entry is in doubt.
insert into carrick.score_doubts (entry_id, write_id, section_id, patrol_id, base, target, noted_at)
values (%(entry_id)s, %(write_id)s, %(section_id)s, %(patrol_id)s, %(base)s, %(target)s, carrick.clock())
on conflict (entry_id) do nothing
returning entry_id
