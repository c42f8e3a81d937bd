-- A write to OSM is about to be tried; no row when another one of that entry is in doubt.
insert into carrick_score_doubts (entry_id, write_id, section_id, patrol_id, base, target, noted_at)
values (:entry_id, :write_id, :section_id, :patrol_id, :base, :target, (select now from carrick_clock))
on conflict (entry_id) do nothing
returning entry_id
