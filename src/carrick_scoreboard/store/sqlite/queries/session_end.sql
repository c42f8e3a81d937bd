-- A leader has signed out, here.
delete from carrick_web_sessions where session_digest = :session_digest returning osm_user_id
