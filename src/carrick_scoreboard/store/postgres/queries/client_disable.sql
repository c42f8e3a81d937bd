-- Closes the door for new sign-ins of a device application; no row where it is closed already.
update carrick.device_clients set disabled_at = carrick.clock(), replaced_by = coalesce(%(replaced_by)s, replaced_by)
where client_id = %(client_id)s and disabled_at is null
returning client_id
