-- Removes dead entries for good, the oldest first; those that died after `died_by` stay. pin_plan.sql goes before.
select carrick.discard(%(channel)s::text, array(
  select e.id from carrick.ended e
   where e.channel = %(channel)s::text and e.state = 'dead' and (%(reason)s::text is null or e.dlq_reason = %(reason)s::text)
     and e.ended_at <= coalesce(%(died_by)s::timestamptz, 'infinity')
   order by e.ended_at, e.seq limit %(max_rows)s::int))
