-- Forgets acts after that many days.
delete from carrick_audit where done_at < (select now from carrick_clock) - :days * 86400000000 returning id
