-- The points of some sections that are on their way, patrol by patrol, of all leaders.
select section_id, patrol_id, sum(points) as points
from carrick_score_update_state
where section_id in (select value from json_each(:section_ids)) and applied_at is null and discarded_at is null and state in ('pending', 'claimed')
group by section_id, patrol_id
