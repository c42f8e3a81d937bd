-- Writes a value where there is none, or one that has ended; whether it did. Guarded by the epoch: no row when it is
-- over. Who waits for another writer looks at what that one wrote.
with current as materialized (
  select number from carrick.state_epoch where number = %(epoch)s
), written as (
  insert into carrick.state_item as i (epoch, key, value, ends_at)
  select number, %(key)s, %(value)s, carrick.clock() + make_interval(secs => %(ttl)s) from current
  on conflict (epoch, key) do update set value = excluded.value, ends_at = excluded.ends_at
    where i.ends_at <= carrick.clock()
  returning 1
)
select exists (select from written) from current
