-- A frozen batch, whole: its entries, and whether each may go (not claimed, due, behind no gate, of the tenant asked for,
-- of a group that no lease holds, behind no earlier entry that is not frozen with it).
select 0, t.seq, w.size, w.rank, w.troubled,
       w.batch_id is null and w.due <= :now and (:tenant is null or w.tenant_id = :tenant)
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
                              and not exists (select 1 from carrick_trouble as o
                                               where o.seq = e.seq and o.frozen_batch = t.frozen_batch)))
  from carrick_trouble as t join carrick_work as w on w.seq = t.seq
 where t.frozen_batch = :frozen_batch
 order by t.seq
