-- Groups of one tenant that are due, each seen through its first due entry; an entry without a group is one by itself.
-- Debounced entries make a group due when all of them are, or at the first one's longest wait; an entry without delay makes
-- it due at once; a retry's backoff holds it, and so does an entry that comes back apart. What stands behind a closed gate of
-- its principal holds nobody. No other lease holds it (G4).
select w.seq
  from carrick_work as w
 where w.channel = :channel and w.tenant_id = :tenant and w.batch_id is null and w.rank >= :floor and w.rank <= :horizon
   and w.due <= :now and w.special = 0 and (w.principal is null or w.principal not in (select value from json_each(:held_principals)))
   and (w.group_key is null
        or (not exists (select 1 from carrick_work as e
                         where e.channel = :channel and e.tenant_id = :tenant and e.group_key = w.group_key
                           and e.seq < w.seq and e.due <= :now
                           and (e.principal is null or e.principal not in (select value from json_each(:held_principals))))
            and not exists (select 1 from carrick_work as h
                             where h.channel = :channel and h.tenant_id = :tenant and h.group_key = w.group_key
                               and h.batch_id is not null)
            and not exists (select 1 from carrick_work as s
                             where s.channel = :channel and s.tenant_id = :tenant and s.group_key = w.group_key
                               and s.special = 1
                               and (s.principal is null or s.principal not in (select value from json_each(:held_principals))))
            and (select max(e.troubled and e.due > :now) = 0
                        and (max(not e.delayed and e.due <= :now) or max(e.due) <= :now
                             or coalesce(min(e.max_wait_at) <= :now, 0))
                   from carrick_work as e
                  where e.channel = :channel and e.tenant_id = :tenant and e.group_key = w.group_key
                    and (e.principal is null or e.principal not in (select value from json_each(:held_principals))))))
 order by w.rank, w.seq
 limit :units
