-- A leader has signed out, here.
delete from carrick.web_sessions where session_digest = %(session_digest)s returning osm_user_id
