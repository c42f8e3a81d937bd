-- Remembers a key beyond its entry.
insert into carrick_remembered_key (channel, tenant_id, key, id, state, content_hash, forget_at)
values (:channel, :tenant_id, :key, :id, :state, :content_hash, :forget_at)
on conflict (channel, tenant_id, key) do nothing
