-- Values whose keys begin with the prefix, in order, with the seconds that are left of them.
select key, value, extract(epoch from ends_at - carrick.clock())::double precision
from carrick.state_item
where key >= %(prefix)s and starts_with(key, %(prefix)s) and ends_at > carrick.clock()
order by key limit %(limit)s
