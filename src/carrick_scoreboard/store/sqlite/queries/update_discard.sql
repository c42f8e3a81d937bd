-- Points are given up. What was applied stays.
update carrick_score_updates set discarded_at = (select now from carrick_clock)
where entry_id = :entry_id and applied_at is null and discarded_at is null
returning id
