-- Takes the refresh of these tokens for a time; no row when others have it, or when the tokens are new already.
-- Who seems to have it for longer than anybody may took it while the clock was ahead.
update carrick.user_credentials
set refreshing_by = %(by)s, refresh_ends_at = carrick.clock() + make_interval(secs => %(seconds)s)
where osm_user_id = %(osm_user_id)s and generation = %(generation)s and revoked_at is null
  and (refresh_ends_at is null or refresh_ends_at <= carrick.clock()
       or refresh_ends_at > carrick.clock() + make_interval(secs => %(seconds)s))
returning osm_user_id
