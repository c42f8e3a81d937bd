-- Tenants with entries that come back apart and are due, whether or not those may go.
select distinct tenant_id from carrick_work
 where channel = :channel and special = 1 and batch_id is null and due <= :now
