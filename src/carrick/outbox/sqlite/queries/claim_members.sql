-- All entries of the groups that were picked, by the place of the group and in order; entries behind a gate stay out.
select head.key, e.seq, e.size, e.rank, e.troubled
  from json_each(:heads) as head
 cross join carrick_work as h on h.seq = head.value
 cross join carrick_work as e
    on e.channel = h.channel and e.tenant_id = h.tenant_id and e.group_key = h.group_key
 where e.batch_id is null
   and (e.principal is null or e.principal not in (select value from json_each(:held_principals)))
union all
select head.key, h.seq, h.size, h.rank, h.troubled
  from json_each(:heads) as head cross join carrick_work as h on h.seq = head.value
 where h.group_key is null
 order by 1, 2
