-- Writes a value over the expected one, if that has not ended; whether it did. Guarded by the epoch: no row when it is
-- over.
with current as materialized (
  select number from carrick.state_epoch where number = %(epoch)s
), written as (
  update carrick.state_item i
  set value = %(value)s, ends_at = carrick.clock() + make_interval(secs => %(ttl)s)
  from current
  where i.epoch = current.number and i.key = %(key)s and i.value = %(expected)s and i.ends_at > carrick.clock()
  returning 1
)
select exists (select from written) from current
