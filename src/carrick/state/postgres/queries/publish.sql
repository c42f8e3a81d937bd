-- Tells those who listen on that channel, when this statement commits.
select pg_notify(%(channel)s, %(text)s)
