-- How many entries ended leases hold.
select count(*)
  from carrick_lease as l
  join carrick_work as w on w.batch_id = l.batch_id
 where l.channel = :channel and l.expires_at <= (select now from carrick_clock)
