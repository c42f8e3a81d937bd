-- A coalesced group suspected of a crash, with what waits in it now; not while a part of it is frozen.
select e.seq
  from carrick_work as e
 where e.channel = :channel and e.tenant_id = :tenant and e.group_key = :group_key and e.batch_id is null
   and (e.principal is null or e.principal not in (select value from json_each(:held_principals)))
   and not exists (select 1 from carrick_work as f join carrick_trouble as t on t.seq = f.seq
                    where f.channel = :channel and f.tenant_id = :tenant and f.group_key = :group_key
                      and f.special = 1 and t.frozen_batch is not null)
 order by e.seq
