-- Forgets sessions that are over.
delete from carrick.web_sessions where expires_at <= carrick.clock() returning osm_user_id
