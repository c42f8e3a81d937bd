-- The credential was used. Written once in ten minutes at most.
update carrick_user_credentials set last_used_at = (select now from carrick_clock)
where osm_user_id = :osm_user_id
  and (last_used_at is null or last_used_at < (select now from carrick_clock) - 600000000)
