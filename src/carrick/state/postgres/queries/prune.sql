-- Removes values that have ended, the oldest first, at most so many; how many. One that was written anew meanwhile stays.
with gone as (
  delete from carrick.state_item
  where ctid = any(array(
      select ctid from carrick.state_item where ends_at <= (select carrick.clock()) order by ends_at limit %(max_rows)s))
    and ends_at <= carrick.clock()
  returning 1
)
select count(*) from gone
