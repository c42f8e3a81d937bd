-- Forgets credentials that nobody needs: no session, no device, nothing unfinished, not used for that many days.
delete from carrick.user_credentials as c
where coalesce(c.last_used_at, c.created_at) < carrick.clock() - make_interval(days => %(days)s)
  and not exists (select 1 from carrick.web_sessions as s where s.osm_user_id = c.osm_user_id)
  and not exists (select 1 from carrick.devices as d where d.osm_user_id = c.osm_user_id and d.revoked_at is null)
  and not exists (select 1 from carrick.score_updates as u
                  where u.osm_user_id = c.osm_user_id and u.applied_at is null and u.discarded_at is null)
returning c.osm_user_id
