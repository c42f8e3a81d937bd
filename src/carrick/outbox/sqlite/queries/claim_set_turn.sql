-- Remembers the tenant served last, where a claim could not serve all that wait.
insert into carrick_turn (channel, tenant_id) values (:channel, :tenant)
on conflict (channel) do update set tenant_id = excluded.tenant_id
