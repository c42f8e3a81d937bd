-- The points of a section that are on their way, patrol by patrol, of all leaders.
-- SQLite asks the engine's tables: its view writes times as text.
select u.patrol_id, sum(u.points) as points, count(*) as updates
from carrick_score_updates as u
join carrick_record as r on r.id = u.entry_id
join carrick_work as w on w.seq = r.seq
where u.section_id = :section_id and u.applied_at is null and u.discarded_at is null
group by u.patrol_id
