-- Points are given up. What was applied stays.
update carrick.score_updates set discarded_at = carrick.clock()
where entry_id = %(entry_id)s and applied_at is null and discarded_at is null
returning id
