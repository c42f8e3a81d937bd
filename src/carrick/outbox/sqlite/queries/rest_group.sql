-- A group of which entries wait, to be folded: whether a lease holds it, and the times that decide when it is due as a whole (as in
-- standing_group.sql). What stands behind a closed gate of its principal holds nobody.
select coalesce(max(x.batch_id is not null), 0),
       max(case when x.troubled then x.due end),
       min(case when not x.delayed then x.due end),
       max(case when x.delayed then x.due end),
       min(x.due),
       min(x.max_wait_at)
  from carrick_work as x
 where x.channel = :channel and x.tenant_id = :tenant and x.group_key = :group_key
   and (x.principal is null or x.batch_id is not null or x.principal not in (select value from json_each(:held_principals)))
