-- Waiting entries of a tenant, channel by channel, in the order of claims. pin_plan.sql goes before.
select w.id
  from carrick.channel c
 cross join lateral (
   select x.id from carrick.work x
    where x.channel = c.name and x.tenant_id = %(text)s::text
    order by x.rank, x.seq limit %(rows)s::int) w
 limit %(rows)s::int
