-- Values whose keys begin with the prefix, in order, with the seconds that are left of them; one row without a key where
-- there are none. Guarded by the epoch: no row at all when it is over.
select i.key, i.value, i.ends_in
from carrick.state_epoch e
left join lateral (
  select key, value, extract(epoch from ends_at - carrick.clock())::double precision as ends_in
  from carrick.state_item
  where epoch = e.number and key >= %(prefix)s and starts_with(key, %(prefix)s) and ends_at > carrick.clock()
  order by key limit %(limit)s
) i on true
where e.number = %(epoch)s
