-- A write to OSM is about to be tried; no row when another one of that entry is in doubt, or its points are over.
-- The lock: who discards them meanwhile sees the doubt, or is seen.
insert into carrick.score_doubts (entry_id, write_id, section_id, patrol_id, base, target, noted_at)
select u.entry_id, %(write_id)s::uuid, %(section_id)s::bigint, %(patrol_id)s::text, %(base)s::bigint, %(target)s::bigint, carrick.clock()
  from (select w.entry_id from carrick.score_updates as w
         where w.entry_id = %(entry_id)s::uuid and w.applied_at is null and w.discarded_at is null
           for no key update) as u
on conflict (entry_id) do nothing
returning entry_id
