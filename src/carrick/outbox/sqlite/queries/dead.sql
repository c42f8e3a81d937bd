-- What the dead entries of a channel died of, and when: the oldest `most` of them are counted.
select looked.dlq_reason, looked.last_error_code, count(*), min(looked.ended_at), max(looked.ended_at)
  from (select e.dlq_reason, e.last_error_code, e.ended_at from carrick_ended as e
         where e.channel = :channel and e.state = 'dead' and (:reason is null or e.dlq_reason = :reason)
         order by e.ended_at, e.seq limit :most) as looked
 group by 1, 2 order by 3 desc, 1, 2
