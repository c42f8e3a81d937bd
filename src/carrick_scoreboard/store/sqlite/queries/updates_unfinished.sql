-- A user's updates that are neither applied nor discarded, the oldest first.
-- SQLite asks the engine's tables: its view writes times as text.
select u.id, u.entry_id, u.submission_id, u.osm_user_id, u.section_id, u.patrol_id, u.patrol_name, u.points,
       u.undo_of, u.created_at, u.applied_at, u.previous_score, u.new_score, u.discarded_at,
       case when x.state is not null then x.state when w.batch_id is not null then 'claimed' when w.seq is not null then 'pending' end
         as state,
       coalesce(x.attempt_count, t.attempt_count, 0) as attempt_count, w.due as next_attempt_at,
       coalesce(x.last_error_code, t.last_error_code) as last_error_code,
       coalesce(x.last_error_message, t.last_error_message) as last_error_message, d.base, d.target, d.found
from carrick_score_updates as u
left join carrick_record as r on r.id = u.entry_id
left join carrick_work as w on w.seq = r.seq
left join carrick_trouble as t on t.seq = w.seq
left join carrick_ended as x on x.seq = r.seq
left join carrick_score_doubts as d on d.entry_id = u.entry_id
where u.osm_user_id = :osm_user_id and u.applied_at is null and u.discarded_at is null
order by u.id limit :limit
