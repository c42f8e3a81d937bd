-- A write to OSM is about to be tried; no row when another one of that entry is in doubt, or its points are over.
insert into carrick_score_doubts (entry_id, write_id, section_id, patrol_id, base, target, noted_at)
select u.entry_id, :write_id, :section_id, :patrol_id, :base, :target, (select now from carrick_clock)
  from carrick_score_updates as u
 where u.entry_id = :entry_id and u.applied_at is null and u.discarded_at is null
on conflict (entry_id) do nothing
returning entry_id
