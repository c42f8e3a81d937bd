-- Forgets devices that were shut out that many days ago.
delete from carrick.devices where revoked_at < carrick.clock() - make_interval(days => %(days)s) returning id
