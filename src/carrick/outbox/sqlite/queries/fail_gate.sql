-- Counts a failure and closes the gate for longer: min(cap, 2^(failures - 1)) seconds, times the jitter. While it is closed
-- only the failure of the probe counts. A gate closed until opened stays so.
insert into carrick_gate (channel, scope, closed_at, closed_until, reason, consecutive_failures)
values (:channel, :scope, :now, :now + cast(min(:cap_seconds, 1) * :jitter * 1000000 as integer), :reason, 1)
on conflict (channel, scope) do update
  set closed_until = case when closed_until = :forever then closed_until
                          else :now + cast(min(:cap_seconds, 1 << min(consecutive_failures, 60)) * :jitter * 1000000
                                           as integer) end,
      reason = case when closed_until = :forever then reason else excluded.reason end,
      consecutive_failures = consecutive_failures + 1
  where closed_until <= :now or :probe
