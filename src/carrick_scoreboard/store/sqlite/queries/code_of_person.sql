-- The sign-in that a person has typed the code of, while it lasts.
select id, user_code, client_id, status, address, country, poll_seconds, device_id, created_at, expires_at,
       last_polled_at
from carrick_device_codes where user_code = :user_code and expires_at > (select now from carrick_clock)
