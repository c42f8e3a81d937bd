-- The device has come. Written once in ten minutes at most: devices come often.
update carrick_devices set last_used_at = (select now from carrick_clock)
where id = :id and (last_used_at is null or last_used_at < (select now from carrick_clock) - 600000000)
returning id
