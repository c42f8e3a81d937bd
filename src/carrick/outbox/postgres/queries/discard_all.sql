-- Removes dead entries for good, the oldest first; those that died after `died_by` stay. pin_plan.sql goes before.
-- Not by carrick.discard: without statistics it would compare every id with every dead entry.
with doomed as materialized (
  select e.seq from carrick.ended e
   where e.channel = %(channel)s::text and e.state = 'dead' and (%(reason)s::text is null or e.dlq_reason = %(reason)s::text)
     and e.ended_at <= coalesce(%(died_by)s::timestamptz, 'infinity')
   order by e.ended_at, e.seq limit %(max_rows)s::int for update skip locked),
chosen as materialized (
  select count(*)::int as n, array_agg(d.seq) as seqs from doomed d)
select s.n, carrick._remove(carrick._known_channel(%(channel)s::text), s.seqs)::text
  from chosen s where s.n > 0
