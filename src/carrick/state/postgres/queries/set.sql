-- Writes a value, whatever was there. Guarded by the epoch: no row when it is over.
insert into carrick.state_item (epoch, key, value, ends_at)
select number, %(key)s, %(value)s, carrick.clock() + make_interval(secs => %(ttl)s)
from carrick.state_epoch where number = %(epoch)s
on conflict (epoch, key) do update set value = excluded.value, ends_at = excluded.ends_at
returning true
