-- Begins the sign-in of a device; no row when one of the two codes is taken, or the application is not let in.
insert into carrick.device_codes (code_digest, user_code, client_id, address, country, poll_seconds, created_at, expires_at)
select %(code_digest)s, %(user_code)s, client_id, %(address)s, %(country)s, %(poll_seconds)s, now,
       now + make_interval(secs => %(seconds)s)
from (select carrick.clock() as now) as c, carrick.device_clients where client_id = %(client_id)s and disabled_at is null
on conflict do nothing
returning id, user_code, client_id, status, address, country, poll_seconds, device_id, created_at, expires_at, last_polled_at
