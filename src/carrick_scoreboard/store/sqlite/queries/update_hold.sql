-- Whether these points are neither applied nor discarded. Whoever writes has the file to themselves.
select id from carrick_score_updates where entry_id = :entry_id and applied_at is null and discarded_at is null
