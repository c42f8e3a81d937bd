-- Remembers a pair of external ids; answers with a row when it is new.
insert into carrick_contact_conflicts (tenant_id, external_id, other, announced_at)
select :tenant, min(:external_id, :other), max(:external_id, :other), now from carrick_clock where true
on conflict do nothing returning 1
