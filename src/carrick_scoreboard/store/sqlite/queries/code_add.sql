-- Begins the sign-in of a device; no row when one of the two codes is taken, or the application is not let in.
insert into carrick_device_codes (code_digest, user_code, client_id, address, country, poll_seconds, created_at, expires_at)
select :code_digest, :user_code, client_id, :address, :country, :poll_seconds, now, now + :seconds * 1000000
from carrick_clock, carrick_device_clients where client_id = :client_id and disabled_at is null
on conflict do nothing
returning id, user_code, client_id, status, address, country, poll_seconds, device_id, created_at, expires_at, last_polled_at
