-- Waiting entries of some tenants that belong to a group, in the order in which they were put.
select w.id
  from json_each(:pairs) as p
 cross join carrick_work as w
    on w.channel = json_extract(p.value, '$[0]') and w.tenant_id = json_extract(p.value, '$[1]') and w.group_key = :text
   and w.batch_id is null
 limit :rows
