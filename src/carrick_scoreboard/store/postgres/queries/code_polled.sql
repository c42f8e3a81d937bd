-- The device has asked; how long it must wait from now on.
update carrick.device_codes set last_polled_at = carrick.clock(), poll_seconds = %(poll_seconds)s where id = %(id)s
