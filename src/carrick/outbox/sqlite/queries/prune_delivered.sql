-- Delivered entries past their retention, the oldest first.
select seq from carrick_ended
 where channel = :channel and state = 'delivered' and ended_at <= :before
 order by ended_at, seq limit :max_rows
