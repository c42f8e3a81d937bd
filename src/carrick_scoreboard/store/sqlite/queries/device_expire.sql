-- Shuts out devices that nobody has used for 30 days, unless a term runs or one ended less than 120 days ago:
-- a summer break is no reason. The day is that of UTC: SQLite knows no Europe/London, and an hour in 120 days is nothing.
update carrick_devices set revoked_at = (select now from carrick_clock), token_digest = null
where revoked_at is null
  and coalesce(last_used_at, created_at) < (select now from carrick_clock) - 30 * 86400000000
  and (term_end_date is null
       or term_end_date < date((select now from carrick_clock) / 1000000, 'unixepoch', '-120 days'))
returning id, client_id, name, osm_user_id, section_id, term_id, term_checked_at, term_end_date, created_at,
       last_used_at, revoked_at
