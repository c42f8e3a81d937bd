-- Removes a value, or only the expected one; whether there was one that had not ended. Guarded by the epoch: no row when
-- it is over.
with current as materialized (
  select number from carrick.state_epoch where number = %(epoch)s
), gone as (
  delete from carrick.state_item i using current
  where i.epoch = current.number and i.key = %(key)s and i.ends_at > carrick.clock()
    and (%(expected)s::bytea is null or i.value = %(expected)s)
  returning 1
)
select exists (select from gone) from current
