-- The groups of some tenants, at most so many: one index step each.
with recursive first (tenant_id, group_key) as (
  select lane.value, (select x.group_key from carrick_work as x
                       where x.channel = :channel and x.tenant_id = lane.value and x.group_key is not null
                       order by x.group_key limit 1)
    from json_each(:lanes) as lane
  union all
  select f.tenant_id, (select x.group_key from carrick_work as x
                        where x.channel = :channel and x.tenant_id = f.tenant_id and x.group_key > f.group_key
                        order by x.group_key limit 1)
    from first as f where f.group_key is not null)
select tenant_id, group_key from first where group_key is not null limit :most
