-- Forgets sign-ins that ended a day ago.
delete from carrick.device_codes where expires_at < carrick.clock() - interval '1 day' returning id
