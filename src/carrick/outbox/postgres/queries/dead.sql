-- What the dead entries of a channel died of, and when: the oldest `most` of them are counted.
select looked.dlq_reason, looked.last_error_code, count(*)::int, min(looked.ended_at), max(looked.ended_at)
  from (select e.dlq_reason, e.last_error_code, e.ended_at from carrick.ended e
         where e.channel = %(channel)s::text and e.state = 'dead' and (%(reason)s::text is null or e.dlq_reason = %(reason)s::text)
         order by e.ended_at, e.seq limit %(most)s::int) as looked
 group by 1, 2 order by 3 desc, 1, 2
