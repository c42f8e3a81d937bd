-- A leader has signed in.
insert into carrick.web_sessions (session_digest, osm_user_id, created_at, expires_at)
values (%(session_digest)s, %(osm_user_id)s, carrick.clock(), carrick.clock() + make_interval(secs => %(seconds)s))
