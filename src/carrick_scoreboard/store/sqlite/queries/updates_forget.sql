-- Gives up updates whose entries retention has removed: dead for so long that nobody will look. Not while OSM may have the points.
update carrick_score_updates set discarded_at = (select now from carrick_clock)
where applied_at is null and discarded_at is null
  and not exists (select 1 from carrick_record as r where r.id = carrick_score_updates.entry_id)
  and not exists (select 1 from carrick_score_doubts as d where d.entry_id = carrick_score_updates.entry_id and d.found is null)
returning id
