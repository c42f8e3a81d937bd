-- Heads among the first entries that are due, of each tenant so many by rank, up to its share: an entry without a group, or the
-- first of a group of which no other lease holds one (G4, G5). Where most of the first wait behind a few heads, claim_heads.sql
-- finds others.
select lane.key, w.seq, w.size, w.rank, w.troubled
  from json_each(:lanes) as lane
 cross join carrick_work as w
    on w.seq in (select z.seq
                   from (select n.seq, n.rank, n.group_key from carrick_work as n
                          where n.channel = :channel and n.tenant_id = lane.value and n.batch_id is null
                            and n.rank >= :floor and n.rank <= :horizon and n.due <= :now and n.special = 0
                            and (n.principal is null or n.principal not in (select value from json_each(:held_principals)))
                          order by n.rank, n.seq limit :look) as z
                  where z.group_key is null
                     or (not exists (select 1 from carrick_work as e
                                      where e.channel = :channel and e.tenant_id = lane.value
                                        and e.group_key = z.group_key and e.seq < z.seq)
                         and not exists (select 1 from carrick_work as h
                                          where h.channel = :channel and h.tenant_id = lane.value
                                            and h.group_key = z.group_key and h.batch_id is not null))
                  order by z.rank, z.seq limit :share)
 order by lane.key, w.rank, w.seq
