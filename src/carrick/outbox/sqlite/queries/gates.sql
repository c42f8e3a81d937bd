-- Gates that are closed now.
select channel, scope, closed_until, reason, consecutive_failures, closed_by
  from carrick_gate
 where closed_until > (select now from carrick_clock) and (:channel is null or channel = :channel)
 order by channel, scope
