-- Notes which events a tenant's batch has brought: those that were stored last, so many of them.
insert into carrick_intake (tenant_id, received_at, first_place, last_place)
select :tenant_id, :received_at, max(place) - :stored + 1, max(place) from carrick_inbox
