-- The first entries of a tenant by rank, those behind gates left out: their group, when they are due, their priority.
select first.group_key, first.due, first.priority
  from (select w.group_key, w.due, w.priority, w.principal from carrick_work as w
         where w.channel = :channel and w.tenant_id = :tenant and w.batch_id is null
         order by w.rank, w.seq limit :look) as first
 where first.principal is null or first.principal not in (select value from json_each(:held_principals))
