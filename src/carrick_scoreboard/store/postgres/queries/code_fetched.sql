-- The device has its token.
update carrick.device_codes set status = 'fetched' where id = %(id)s
