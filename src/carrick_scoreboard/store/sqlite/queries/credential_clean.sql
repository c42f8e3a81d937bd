-- Forgets credentials that nobody needs: no session, no device, nothing unfinished, not used for that many days.
delete from carrick_user_credentials
where coalesce(last_used_at, created_at) < (select now from carrick_clock) - :days * 86400000000
  and not exists (select 1 from carrick_web_sessions as s where s.osm_user_id = carrick_user_credentials.osm_user_id)
  and not exists (select 1 from carrick_devices as d where d.osm_user_id = carrick_user_credentials.osm_user_id and d.revoked_at is null)
  and not exists (select 1 from carrick_score_updates as u where u.osm_user_id = carrick_user_credentials.osm_user_id
                  and u.applied_at is null and u.discarded_at is null)
returning osm_user_id
