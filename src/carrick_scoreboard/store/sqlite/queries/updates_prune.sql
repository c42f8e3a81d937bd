-- Forgets points that are over, after that many days. Not while their entry is there, or somebody must look at what became of them.
delete from carrick_score_updates
where created_at < (select now from carrick_clock) - :days * 86400000000
  and (applied_at is not null or discarded_at is not null)
  and not exists (select 1 from carrick_score_doubts as d where d.entry_id = carrick_score_updates.entry_id)
  and not exists (select 1 from carrick_record as r where r.id = carrick_score_updates.entry_id)
returning id
