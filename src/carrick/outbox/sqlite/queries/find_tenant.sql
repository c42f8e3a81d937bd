-- Waiting entries of a tenant, channel by channel, in the order of claims.
select w.id
  from carrick_channel as c
 cross join carrick_work as w on w.channel = c.name and w.tenant_id = :text and w.batch_id is null
 limit :rows
