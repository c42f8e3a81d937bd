-- Remembers the tenant served last, where a claim could not serve all that wait.
insert into carrick_turn (channel, fresh, tenant_id) values (:channel, :fresh, :tenant)
on conflict (channel, fresh) do update set tenant_id = excluded.tenant_id
