-- Tenants with waiting entries, by name, after the given one (null: from the first), at most so many: one index step each.
with recursive lane (tenant_id) as (
  select (select w.tenant_id from carrick_work as w
           where w.channel = :channel and w.batch_id is null and (:after is null or w.tenant_id > :after)
           order by w.tenant_id limit 1)
  union all
  select (select w.tenant_id from carrick_work as w
           where w.channel = :channel and w.batch_id is null and w.tenant_id > lane.tenant_id
           order by w.tenant_id limit 1)
    from lane where lane.tenant_id is not null)
select tenant_id from lane where tenant_id is not null limit :most
