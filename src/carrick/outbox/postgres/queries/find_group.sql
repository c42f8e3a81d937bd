-- Waiting entries of some tenants that belong to a group, in the order in which they were put. pin_plan.sql goes before.
select w.id
  from unnest(%(channels)s::text[], %(tenants)s::text[]) as p(channel, tenant_id)
 cross join lateral (
   select x.id from carrick.work x
    where x.channel = p.channel and x.tenant_id = p.tenant_id and x.group_key = %(text)s::text
    order by x.seq limit %(rows)s::int) w
 limit %(rows)s::int
