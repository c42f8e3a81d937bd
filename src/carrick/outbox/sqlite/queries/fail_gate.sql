-- Counts a failure and closes the gate for longer: min(cap, 2^(failures - 1)) seconds, times the jitter. While it is closed
-- only the failure of the probe counts, and nothing shortens what a person or the destination asked for.
insert into carrick_gate (channel, scope, closed_at, closed_until, reason, consecutive_failures, closed_by)
values (:channel, :scope, :now, :now + cast(min(:cap_seconds, 1) * :jitter * 1000000 as integer), :reason, 1, 'failures')
on conflict (channel, scope) do update
  set closed_until = :now + cast(min(:cap_seconds, 1 << min(consecutive_failures, 60)) * :jitter * 1000000 as integer),
      reason = excluded.reason, consecutive_failures = consecutive_failures + 1, closed_by = 'failures'
  where closed_until <= :now or (:probe and closed_by = 'failures')
