-- The device has come. Written once in ten minutes at most: devices come often.
update carrick.devices set last_used_at = carrick.clock()
where id = %(id)s and (last_used_at is null or last_used_at < carrick.clock() - interval '10 minutes')
returning id
