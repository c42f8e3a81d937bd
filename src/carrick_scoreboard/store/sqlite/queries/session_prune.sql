-- Forgets sessions that are over.
delete from carrick_web_sessions where expires_at <= (select now from carrick_clock) returning osm_user_id
