-- The sign-in of a device, held until the transaction ends; and what time it is.
select id, user_code, client_id, status, address, country, poll_seconds, device_id, created_at, expires_at,
       last_polled_at, carrick.clock() as now_at
from carrick.device_codes where code_digest = %(code_digest)s
for update
