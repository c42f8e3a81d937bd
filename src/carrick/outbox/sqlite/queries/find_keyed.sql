-- In which channels which tenants have entries with a key, the first by name.
-- Steps from tenant to tenant by the index: it costs as much however many entries there are.
with recursive step (channel, tenant_id, n) as (
  select c.name, (select min(x.tenant_id) from carrick_record as x where x.channel = c.name and x.key is not null), 1
    from carrick_channel as c
  union all
  select s.channel, (select min(x.tenant_id) from carrick_record as x
                      where x.channel = s.channel and x.key is not null and x.tenant_id > s.tenant_id), s.n + 1
    from step as s where s.tenant_id is not null and s.n < :pairs)
select channel, tenant_id from step where tenant_id is not null limit :pairs
