-- Ended entries past their retention, the oldest first.
select seq from carrick_ended
 where channel = :channel and state = :state and ended_at <= :before
 order by ended_at limit :max_rows
