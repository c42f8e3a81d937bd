-- The points of some sections that are on their way, patrol by patrol, of all leaders.
select section_id, patrol_id, sum(points)::bigint as points
from carrick.score_update_state
where section_id = any(%(section_ids)s::bigint[]) and applied_at is null and discarded_at is null and state in ('pending', 'claimed')
group by section_id, patrol_id
