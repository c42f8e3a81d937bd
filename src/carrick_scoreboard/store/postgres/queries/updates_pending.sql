-- The points of a section that are on their way, patrol by patrol, of all leaders.
select u.patrol_id, sum(u.points) as points, count(*) as updates
from carrick.score_updates as u
join carrick.entry as e on e.id = u.entry_id and e.state in ('pending', 'claimed')
where u.section_id = %(section_id)s and u.applied_at is null and u.discarded_at is null
group by u.patrol_id
