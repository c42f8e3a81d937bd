-- Closes the door for new sign-ins of a device application; no row where it is closed already.
update carrick_device_clients set disabled_at = (select now from carrick_clock), replaced_by = coalesce(:replaced_by,
       replaced_by)
where client_id = :client_id and disabled_at is null
returning client_id
