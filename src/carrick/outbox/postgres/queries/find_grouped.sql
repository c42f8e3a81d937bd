-- In which channels which tenants have live entries of groups, the first by name.
-- Steps from tenant to tenant by the index: it costs as much however many entries there are. pin_plan.sql goes before.
with recursive step (channel, tenant_id, n) as (
  select c.name, (select min(x.tenant_id) from carrick.work x where x.channel = c.name and x.group_key is not null), 1
    from carrick.channel c
  union all
  select s.channel, (select min(x.tenant_id) from carrick.work x
                      where x.channel = s.channel and x.group_key is not null and x.tenant_id > s.tenant_id), s.n + 1
    from step s where s.tenant_id is not null and s.n < %(pairs)s::int)
select channel, tenant_id from step where tenant_id is not null limit %(pairs)s::int
