-- Begins the sign-in of a device; no row when one of the two codes is taken.
insert into carrick.device_codes (code_digest, user_code, client_id, address, country, poll_seconds, created_at,
       expires_at)
values (%(code_digest)s, %(user_code)s, %(client_id)s, %(address)s, %(country)s, %(poll_seconds)s, carrick.clock(),
        carrick.clock() + make_interval(secs => %(seconds)s))
on conflict do nothing
returning id, user_code, client_id, status, address, country, poll_seconds, device_id, created_at, expires_at,
       last_polled_at
