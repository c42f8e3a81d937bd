-- A session, while it lasts, with its user; and what time it is.
select s.osm_user_id, s.selected_section_id, s.created_at, s.expires_at, c.osm_user_name, c.revoked_at,
       (select now from carrick_clock) as now_at
from carrick_web_sessions as s
join carrick_user_credentials as c on c.osm_user_id = s.osm_user_id
where s.session_digest = :session_digest and s.expires_at > (select now from carrick_clock)
