-- The device has its token.
update carrick_device_codes set status = 'fetched' where id = :id
