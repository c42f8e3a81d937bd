-- The credential was used. Written once in ten minutes at most.
update carrick.user_credentials set last_used_at = carrick.clock()
where osm_user_id = %(osm_user_id)s
  and (last_used_at is null or last_used_at < carrick.clock() - interval '10 minutes')
