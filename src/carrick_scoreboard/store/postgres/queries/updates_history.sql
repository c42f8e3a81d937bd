-- What was applied in a section, the newest first, before a number, and who undid it.
select u.id, u.entry_id::text as entry_id, u.submission_id, u.osm_user_id, u.section_id, u.patrol_id, u.patrol_name,
       u.points, u.undo_of, u.created_at, u.applied_at, u.previous_score, u.new_score, u.discarded_at,
       c.osm_user_name as user_name,
       (select v.id from carrick.score_updates as v where v.undo_of = u.id and v.discarded_at is null) as undone_by
from carrick.score_updates as u
left join carrick.user_credentials as c on c.osm_user_id = u.osm_user_id
where u.section_id = %(section_id)s and u.applied_at is not null and u.id < %(before)s
order by u.id desc limit %(limit)s
