-- Takes the refresh of these tokens for a time; no row when others have it, or when the tokens are new already.
-- Who seems to have it for longer than anybody may took it while the clock was ahead.
update carrick_user_credentials
set refreshing_by = :by, refresh_ends_at = (select now from carrick_clock) + :seconds * 1000000
where osm_user_id = :osm_user_id and generation = :generation and revoked_at is null
  and (refresh_ends_at is null or refresh_ends_at <= (select now from carrick_clock)
       or refresh_ends_at > (select now from carrick_clock) + :seconds * 1000000)
returning osm_user_id
