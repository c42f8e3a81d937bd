-- The deliveries of one entry that did not go through, in their order.
select a.at, a.outcome, a.number, a.code, a.message
  from carrick.attempt a where a.seq = (select r.seq from carrick.record r where r.id = %(id)s::uuid)
 order by a.at, a.number
