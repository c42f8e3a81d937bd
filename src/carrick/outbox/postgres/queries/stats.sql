-- Every channel at a glance.
select channel, pending_count, held_count, claimed_count, dead_count, backlog_bytes::bigint, oldest_pending_age_seconds,
       delivered_per_second, last_success_at, last_error_at, approximate
  from carrick.stats order by channel
