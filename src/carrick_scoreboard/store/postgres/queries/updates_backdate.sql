-- Makes applied points look older, for the evening of the demo. Nothing else writes these times twice.
update carrick.score_updates
set created_at = created_at - make_interval(secs => %(seconds)s), applied_at = applied_at - make_interval(secs => %(seconds)s)
where id = %(id)s and applied_at is not null
