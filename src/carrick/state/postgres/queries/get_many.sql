-- The values of these keys that have not ended; one row without a key where there are none. Guarded by the epoch: no
-- row at all when it is over.
select i.key, i.value
from carrick.state_epoch e
left join carrick.state_item i on i.epoch = e.number and i.key = any(%(keys)s::text[]) and i.ends_at > carrick.clock()
where e.number = %(epoch)s
