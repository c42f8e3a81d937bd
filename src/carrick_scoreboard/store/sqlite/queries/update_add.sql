-- One update of a submission, beside its entry; no row when it would undo what has been undone.
insert into carrick_score_updates (entry_id, submission_id, osm_user_id, section_id, patrol_id, patrol_name, points,
       undo_of, created_at)
values (:entry_id, :submission_id, :osm_user_id, :section_id, :patrol_id, :patrol_name, :points, :undo_of,
       (select now from carrick_clock))
on conflict do nothing
returning id
