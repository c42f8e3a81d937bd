-- A leader gives an update up. Guarded by its owner; what was applied stays.
update carrick_score_updates set discarded_at = (select now from carrick_clock)
where id = :id and osm_user_id = :osm_user_id and applied_at is null and discarded_at is null
returning id
