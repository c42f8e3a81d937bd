-- Entries that come back apart and are due, oldest first: not behind a gate, of a group that no lease holds (G4), and in
-- ordered channels behind no earlier entry of their group but those frozen with them (G5).
select w.tenant_id, t.batch_cap, t.frozen_batch
  from carrick_work as w join carrick_trouble as t on t.seq = w.seq
 where w.channel = :channel and w.special = 1 and w.batch_id is null and w.due <= :now
   and (:tenant is null or w.tenant_id = :tenant)
   and w.tenant_id not in (select value from json_each(:held_tenants))
   and (w.principal is null or w.principal not in (select value from json_each(:held_principals)))
   and (:mode = 'stream' or w.group_key is null
        or not exists (select 1 from carrick_work as h
                        where h.channel = :channel and h.tenant_id = w.tenant_id and h.group_key = w.group_key
                          and h.batch_id is not null))
   and (:mode <> 'ordered' or w.group_key is null
        or not exists (select 1 from carrick_work as e
                        where e.channel = :channel and e.tenant_id = w.tenant_id and e.group_key = w.group_key
                          and e.seq < w.seq
                          and (t.frozen_batch is null
                               or not exists (select 1 from carrick_trouble as o
                                               where o.seq = e.seq and o.frozen_batch = t.frozen_batch))))
 order by w.due, w.seq
