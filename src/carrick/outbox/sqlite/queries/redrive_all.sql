-- Dead entries to send round again, the oldest first.
select seq from carrick_ended
 where channel = :channel and state = 'dead' and (:reason is null or dlq_reason = :reason)
 order by ended_at, seq limit :max_rows
