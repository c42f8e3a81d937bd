-- The sign-in that a person has typed the code of, while it lasts.
select id, user_code, client_id, status, address, country, poll_seconds, device_id, created_at, expires_at,
       last_polled_at
from carrick.device_codes where user_code = %(user_code)s and expires_at > carrick.clock()
