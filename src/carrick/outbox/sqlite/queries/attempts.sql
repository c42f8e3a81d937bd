-- The deliveries of one entry that did not go through, in their order; times as stored.
select a.at, a.outcome, a.number, a.code, a.message
  from carrick_attempt as a where a.seq = (select r.seq from carrick_record as r where r.id = :id)
 order by a.at, a.number
