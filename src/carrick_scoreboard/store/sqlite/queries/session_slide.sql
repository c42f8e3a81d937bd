-- A session that is used lasts longer. Written once in a while only.
update carrick_web_sessions set expires_at = (select now from carrick_clock) + :seconds * 1000000
where session_digest = :session_digest and expires_at > (select now from carrick_clock)
