-- Heads that are due, of each tenant its oldest ranks, up to its share: an entry without a group, or the first of a group
-- of which no other lease holds one (G4, G5).
select lane.key, w.seq, w.size, w.rank, w.troubled
  from json_each(:lanes) as lane
 cross join carrick_work as w
    on w.seq in (select z.seq from carrick_work as z
                  where z.channel = :channel and z.tenant_id = lane.value and z.batch_id is null
                    and z.rank >= :floor and z.rank <= :horizon and z.due <= :now and z.special = 0
                    and (z.principal is null or z.principal not in (select value from json_each(:held_principals)))
                    and (z.group_key is null
                         or (not exists (select 1 from carrick_work as e
                                          where e.channel = :channel and e.tenant_id = lane.value
                                            and e.group_key = z.group_key and e.seq < z.seq)
                             and not exists (select 1 from carrick_work as h
                                              where h.channel = :channel and h.tenant_id = lane.value
                                                and h.group_key = z.group_key and h.batch_id is not null)))
                  order by z.rank, z.seq limit :share)
 order by lane.key, w.rank, w.seq
