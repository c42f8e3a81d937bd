-- How many waiting entries of a channel were tried in vain, counted up to a limit. By way of the troubles, which are few while much waits.
-- Only one of the indexes that have `seq` has it in order; pin_plan.sql goes before.
select count(*)::int
  from (select from carrick.trouble t
         cross join lateral (select x.channel from carrick.work x where x.seq >= t.seq and x.seq <= t.seq order by x.seq limit 1) w
         where t.attempt_count > 0 and w.channel = %(channel)s::text limit %(most)s::int) as counted
