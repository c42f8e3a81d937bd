-- A group of which entries wait, in order: whether a lease holds it, and when its first entry is due.
select exists (select 1 from carrick_work as h
                where h.channel = :channel and h.tenant_id = :tenant and h.group_key = :group_key and h.batch_id is not null),
       (select f.due from carrick_work as f
         where f.channel = :channel and f.tenant_id = :tenant and f.group_key = :group_key
         order by f.seq limit 1)
