-- The tenants of a channel with the most waiting entries. The first tenants by name are looked at, and of each so many entries are
-- counted: it costs as much however many wait. PostgreSQL has a function that steps from tenant to tenant.
with recursive step (tenant_id, n) as (
  select (select min(w.tenant_id) from carrick_work as w where w.channel = :channel and w.batch_id is null), 1
  union all
  select (select min(w.tenant_id) from carrick_work as w
           where w.channel = :channel and w.batch_id is null and w.tenant_id > step.tenant_id), step.n + 1
    from step where step.tenant_id is not null and step.n < :look)
select step.tenant_id,
       (select count(*) from (select 1 from carrick_work as w
                               where w.channel = :channel and w.tenant_id = step.tenant_id and w.batch_id is null
                               limit :most)) as waiting
  from step where step.tenant_id is not null
 order by waiting desc, step.tenant_id limit :rows
