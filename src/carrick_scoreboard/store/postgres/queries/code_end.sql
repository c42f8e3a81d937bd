-- A person has decided. Guarded: it was still open.
update carrick.device_codes set status = %(status)s, device_id = %(device_id)s
where id = %(id)s and status = 'pending' and expires_at > carrick.clock()
returning id
