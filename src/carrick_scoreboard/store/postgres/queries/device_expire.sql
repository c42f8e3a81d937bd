-- Shuts out devices that nobody has used for 30 days, unless a term runs or one ended less than 120 days ago:
-- a summer break is no reason.
update carrick.devices set revoked_at = carrick.clock(), token_digest = null
where revoked_at is null
  and coalesce(last_used_at, created_at) < carrick.clock() - interval '30 days'
  and (term_end_date is null or term_end_date < (carrick.clock() at time zone 'Europe/London')::date - 120)
returning id, client_id, name, osm_user_id, section_id, term_id, term_checked_at, term_end_date, created_at,
       last_used_at, revoked_at
