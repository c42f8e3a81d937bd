-- Entries that wait, two at most, with whether each may go now: where it is one, there is nothing to choose.
select 0, w.seq, w.size, w.rank, w.troubled,
       w.due <= :now and w.rank >= :floor and w.special = 0
         and (not :grouped or w.group_key is null
              or not exists (select 1 from carrick_work as h
                              where h.channel = :channel and h.tenant_id = w.tenant_id and h.group_key = w.group_key
                                and h.batch_id is not null))
  from carrick_work as w
 where w.channel = :channel and w.batch_id is null
 limit 2
