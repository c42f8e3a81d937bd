-- A leader has signed in.
insert into carrick_web_sessions (session_digest, osm_user_id, created_at, expires_at)
select :session_digest, :osm_user_id, now, now + :seconds * 1000000 from carrick_clock
