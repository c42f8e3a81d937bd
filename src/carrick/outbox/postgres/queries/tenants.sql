-- The tenants of a channel with the most waiting entries. The first tenants by name are looked at, and of each so many entries are
-- counted: it costs as much however many wait.
-- The order is that of the index; pin_plan.sql goes before.
select t.tenant_id,
       (select count(*) from (select from carrick.work w
                               where w.channel = %(channel)s::text and w.tenant_id = t.tenant_id
                               order by w.rank, w.seq limit %(most)s::int) as counted)
  from unnest(carrick._lanes(%(channel)s::text, null, %(look)s::int, null)) as t(tenant_id)
 order by 2 desc, t.tenant_id limit %(rows)s::int
