-- Claimed entries of a tenant or of a group. All leases are opened: they are few.
select w.id
  from carrick_lease as l
 cross join carrick_work as w on w.batch_id = l.batch_id
 where w.tenant_id = :text or (w.group_key = :text and (:tenant is null or w.tenant_id = :tenant))
 limit :rows
