-- Forgets points that are over, after that many days. Not while their entry is there, or somebody must look at what became of them.
delete from carrick.score_updates as u
where u.created_at < carrick.clock() - make_interval(days => %(days)s)
  and (u.applied_at is not null or u.discarded_at is not null)
  and not exists (select 1 from carrick.score_doubts as d where d.entry_id = u.entry_id)
  and not exists (select 1 from carrick.record as r where r.id = u.entry_id)
returning u.id
