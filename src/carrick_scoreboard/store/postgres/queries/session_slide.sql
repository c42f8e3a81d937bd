-- A session that is used lasts longer. Written once in a while only.
update carrick.web_sessions set expires_at = carrick.clock() + make_interval(secs => %(seconds)s)
where session_digest = %(session_digest)s and expires_at > carrick.clock()
