-- Suspects of a crash with the same cap, the oldest first. In ordered channels heads only (G5); in coalescing ones a group is
-- seen through its first due suspect, and waits while a part of it is frozen or backs off. No other lease holds the group (G4).
select 0, w.seq, w.size, w.rank, w.troubled
  from carrick_work as w join carrick_trouble as t on t.seq = w.seq
 where w.channel = :channel and w.special = 1 and w.batch_id is null and w.due <= :now and t.frozen_batch is null
   and t.batch_cap = :batch_cap and (:tenant is null or w.tenant_id = :tenant)
   and w.tenant_id not in (select value from json_each(:held_tenants))
   and (w.principal is null or w.principal not in (select value from json_each(:held_principals)))
   and (:mode = 'stream' or w.group_key is null
        or not exists (select 1 from carrick_work as h
                        where h.channel = :channel and h.tenant_id = w.tenant_id and h.group_key = w.group_key
                          and h.batch_id is not null))
   and (:mode <> 'ordered' or w.group_key is null
        or not exists (select 1 from carrick_work as e
                        where e.channel = :channel and e.tenant_id = w.tenant_id and e.group_key = w.group_key
                          and e.seq < w.seq))
   and (:mode <> 'coalesce' or w.group_key is null
        or not exists (select 1 from carrick_work as e join carrick_trouble as o on o.seq = e.seq
                        where e.channel = :channel and e.tenant_id = w.tenant_id and e.group_key = w.group_key
                          and e.special = 1
                          and (o.frozen_batch is not null or (e.seq < w.seq and e.due <= :now))
                          and (e.principal is null or e.principal not in (select value from json_each(:held_principals)))))
   and (:mode <> 'coalesce' or w.group_key is null
        or not exists (select 1 from carrick_work as e
                        where e.channel = :channel and e.tenant_id = w.tenant_id and e.group_key = w.group_key
                          and e.troubled = 1 and e.due > :now
                          and (e.principal is null
                               or e.principal not in (select value from json_each(:held_principals)))))
 order by w.due, w.seq
 limit :most
