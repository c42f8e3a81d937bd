-- Removes values that have ended, the oldest first, at most so many.
delete from carrick_state_item
where key in (
  select key from carrick_state_item where ends_at <= (select now from carrick_clock) order by ends_at limit :max_rows
)
returning 1
