-- One update of a submission, beside its entry; no row when it would undo what has been undone.
insert into carrick.score_updates (entry_id, submission_id, osm_user_id, section_id, patrol_id, patrol_name, points,
       undo_of, created_at)
values (%(entry_id)s, %(submission_id)s, %(osm_user_id)s, %(section_id)s, %(patrol_id)s, %(patrol_name)s, %(points)s,
       %(undo_of)s, carrick.clock())
on conflict do nothing
returning id
