-- A leader gives an update up. Guarded by its owner; what was applied stays.
update carrick.score_updates set discarded_at = carrick.clock()
where id = %(id)s and osm_user_id = %(osm_user_id)s and applied_at is null and discarded_at is null
returning id
