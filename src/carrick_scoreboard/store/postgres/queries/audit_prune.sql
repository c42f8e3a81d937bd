-- Forgets acts after that many days.
delete from carrick.audit where done_at < carrick.clock() - make_interval(days => %(days)s) returning id
