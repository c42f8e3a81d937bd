-- A write to OSM is about to be tried.
insert into carrick.score_doubts (entry_id, write_id, section_id, patrol_id, base, target, noted_at)
values (%(entry_id)s, %(write_id)s, %(section_id)s, %(patrol_id)s, %(base)s, %(target)s, carrick.clock())
on conflict (entry_id) do update
set write_id = excluded.write_id, base = excluded.base, target = excluded.target, found = null, noted_at = excluded.noted_at
