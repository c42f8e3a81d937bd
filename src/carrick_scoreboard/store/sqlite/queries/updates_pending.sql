-- The points of a section that are on their way, patrol by patrol, of all leaders.
select patrol_id, sum(points) as points, count(*) as updates
from carrick_score_update_state
where section_id = :section_id and applied_at is null and discarded_at is null and state in ('pending', 'claimed')
group by patrol_id
