-- The closed gates of a channel, and its own gate when it is half open: failures closed it and its time is up.
select scope, closed_until <= :now
  from carrick_gate
 where channel = :channel and (closed_until > :now or (scope = '*' and consecutive_failures > 0))
