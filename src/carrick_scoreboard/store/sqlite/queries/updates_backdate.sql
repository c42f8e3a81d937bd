-- Makes applied points look older, for the evening of the demo. Nothing else writes these times twice.
update carrick_score_updates set created_at = created_at - :seconds * 1000000, applied_at = applied_at - :seconds * 1000000
where id = :id and applied_at is not null
