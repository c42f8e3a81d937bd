-- Forgets sign-ins that ended a day ago.
delete from carrick_device_codes where expires_at < (select now from carrick_clock) - 86400000000 returning id
