-- How many updates of a user are on their way.
-- SQLite asks the engine's tables: its view writes times as text.
select count(*) as waiting
from carrick_score_updates as u
join carrick_record as r on r.id = u.entry_id
join carrick_work as w on w.seq = r.seq
where u.osm_user_id = :osm_user_id and u.applied_at is null and u.discarded_at is null
