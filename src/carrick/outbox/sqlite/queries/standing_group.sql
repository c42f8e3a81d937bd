-- The group of a waiting entry: whether a lease holds it, its first waiting entry before this one, its first frozen one,
-- and the times that decide when it is due.
select coalesce(max(x.batch_id is not null), 0),
       (select b.id from carrick_work as b
         where b.channel = :channel and b.tenant_id = :tenant_id and b.group_key = :group_key and b.seq < :seq
           and b.batch_id is null
         order by b.seq limit 1),
       (select f.id from carrick_work as f join carrick_trouble as t on t.seq = f.seq
         where f.channel = :channel and f.tenant_id = :tenant_id and f.group_key = :group_key and f.batch_id is null
           and f.troubled = 1 and t.frozen_batch is not null
         order by f.seq limit 1),
       max(case when x.batch_id is null and x.troubled then x.due end),
       min(case when x.batch_id is null and not x.delayed then x.due end),
       max(case when x.batch_id is null and x.delayed then x.due end),
       min(case when x.batch_id is null then x.due end),
       min(case when x.batch_id is null then x.max_wait_at end)
  from carrick_work as x
 where x.channel = :channel and x.tenant_id = :tenant_id and x.group_key = :group_key
