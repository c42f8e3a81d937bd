-- How many waiting entries of a channel were tried in vain, counted up to a limit. By way of the troubles, which are few while much waits.
select count(*)
  from (select 1 from carrick_trouble as t cross join carrick_work as w on w.seq = t.seq and w.batch_id is null
         where t.attempt_count > 0 and w.channel = :channel limit :most)
