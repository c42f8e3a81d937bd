-- Leases that have ended, the oldest first.
select batch_id, units, intent, noted from carrick_lease
 where channel = :channel and expires_at <= :before
 order by expires_at, batch_id
