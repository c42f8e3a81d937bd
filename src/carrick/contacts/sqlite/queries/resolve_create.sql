-- A new contact, the youngest of all.
insert into carrick_contacts (id, tenant_id, created_at, updated_at)
select :contact, :tenant, now, now from carrick_clock
