-- One update, and where its entry is.
select u.id, u.entry_id::text as entry_id, u.submission_id, u.osm_user_id, u.section_id, u.patrol_id, u.patrol_name,
       u.points, u.undo_of, u.created_at, u.applied_at, u.previous_score, u.new_score, u.discarded_at, e.state,
       e.attempt_count, e.next_attempt_at, e.last_error_code, e.last_error_message, d.base, d.target, d.found
from carrick.score_updates as u
left join carrick.entry as e on e.id = u.entry_id
left join carrick.score_doubts as d on d.entry_id = u.entry_id
where u.id = %(id)s
