-- Dead entries to be removed for good, the oldest first; those that died after `died_by` stay.
select seq from carrick_ended
 where channel = :channel and state = 'dead' and (:reason is null or dlq_reason = :reason) and ended_at <= :died_by
 order by ended_at, seq limit :max_rows
