-- Forgets devices that were shut out that many days ago.
delete from carrick_devices where revoked_at < (select now from carrick_clock) - :days * 86400000000 returning id
