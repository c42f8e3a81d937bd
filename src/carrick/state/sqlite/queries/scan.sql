-- Values whose keys begin with the prefix, in order, with the microseconds that are left of them.
select key, value, ends_at - now
from carrick_state_item, carrick_clock
where key >= :prefix and substr(key, 1, length(:prefix)) = :prefix and ends_at > now
order by key limit :limit
