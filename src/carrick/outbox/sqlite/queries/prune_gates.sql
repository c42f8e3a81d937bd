-- Gates whose time is up. The channel's own is half open after failures; those of others keep the count of theirs for a day.
delete from carrick_gate
 where channel = :channel and closed_until <= :now
   and (consecutive_failures = 0 or (scope <> '*' and closed_until <= :now - 86400000000))
