-- The group of a waiting entry: whether a lease holds it, its first waiting entry before this one, its first frozen one that is behind no
-- gate of its principal, with its batch, and the times that decide when it is due. What is behind such a gate holds nobody but itself.
with held (principal) as materialized (
  select substr(g.scope, 11) from carrick_gate as g
   where g.channel = :channel and g.scope like 'principal:%' and g.closed_until > :now),
frozen (id, batch) as materialized (
  select f.id, t.frozen_batch from carrick_work as f join carrick_trouble as t on t.seq = f.seq
   where f.channel = :channel and f.tenant_id = :tenant_id and f.group_key = :group_key and f.batch_id is null
     and f.troubled = 1 and t.frozen_batch is not null and (f.principal is null or f.principal not in (select principal from held))
   order by f.seq limit 1)
select coalesce(max(x.batch_id is not null), 0),
       (select b.id from carrick_work as b
         where b.channel = :channel and b.tenant_id = :tenant_id and b.group_key = :group_key and b.seq < :seq
           and b.batch_id is null
         order by b.seq limit 1),
       (select id from frozen), (select batch from frozen),
       max(case when x.batch_id is null and x.troubled then x.due end),
       min(case when x.batch_id is null and not x.delayed then x.due end),
       max(case when x.batch_id is null and x.delayed then x.due end),
       min(case when x.batch_id is null then x.due end),
       min(case when x.batch_id is null then x.max_wait_at end)
  from carrick_work as x
 where x.channel = :channel and x.tenant_id = :tenant_id and x.group_key = :group_key
   and (x.seq = :seq or x.batch_id is not null or x.principal is null or x.principal not in (select principal from held))
