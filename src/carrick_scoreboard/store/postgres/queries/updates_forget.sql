-- Gives up updates whose entries retention has removed: dead for so long that nobody will look. Not while OSM may have the points.
update carrick.score_updates as u set discarded_at = carrick.clock()
where u.applied_at is null and u.discarded_at is null
  and not exists (select 1 from carrick.record as r where r.id = u.entry_id)
  and not exists (select 1 from carrick.score_doubts as d where d.entry_id = u.entry_id and d.found is null)
returning u.id
