-- A person has decided. Guarded: it was still open.
update carrick_device_codes set status = :status, device_id = :device_id
where id = :id and status = 'pending' and expires_at > (select now from carrick_clock)
returning id
