-- Suspects of a crash with the same cap, no more than that, those of the given tenant first; in ordered channels heads only.
select w.seq
  from carrick_work as w join carrick_trouble as t on t.seq = w.seq
 where w.channel = :channel and w.special = 1 and w.batch_id is null and w.due <= :now and t.frozen_batch is null
   and t.batch_cap = :batch_cap
   and (w.tenant_id = :tenant
        or (not :one_tenant and w.tenant_id not in (select value from json_each(:held_tenants))))
   and (w.principal is null or w.principal not in (select value from json_each(:held_principals)))
   and (:mode = 'stream' or w.group_key is null
        or (:mode = 'ordered'
            and not exists (select 1 from carrick_work as h
                             where h.channel = :channel and h.tenant_id = w.tenant_id and h.group_key = w.group_key
                               and h.batch_id is not null)
            and not exists (select 1 from carrick_work as e
                             where e.channel = :channel and e.tenant_id = w.tenant_id and e.group_key = w.group_key
                               and e.seq < w.seq)))
 order by w.tenant_id <> :tenant, w.due, w.seq
 limit :most
