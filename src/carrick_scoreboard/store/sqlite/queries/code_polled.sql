-- The device has asked; how long it must wait from now on.
update carrick_device_codes set last_polled_at = (select now from carrick_clock),
       poll_seconds = :poll_seconds where id = :id
