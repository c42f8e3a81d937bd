-- How many updates of a user are on their way.
select count(*) as waiting
from carrick.score_updates as u
join carrick.entry as e on e.id = u.entry_id and e.state in ('pending', 'claimed')
where u.osm_user_id = %(osm_user_id)s and u.applied_at is null and u.discarded_at is null
