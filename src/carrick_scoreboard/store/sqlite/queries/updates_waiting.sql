-- How many updates of a user are on their way.
select count(*) as waiting
from carrick_score_update_state
where osm_user_id = :osm_user_id and applied_at is null and discarded_at is null and state in ('pending', 'claimed')
