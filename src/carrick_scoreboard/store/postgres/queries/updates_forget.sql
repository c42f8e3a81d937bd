-- Gives up updates whose entries retention has removed: dead for so long that nobody will look.
update carrick.score_updates as u set discarded_at = carrick.clock()
where u.applied_at is null and u.discarded_at is null
  and not exists (select 1 from carrick.record as r where r.id = u.entry_id)
returning u.id
