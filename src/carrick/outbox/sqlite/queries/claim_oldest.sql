-- Independent entries that are due, the oldest ranks whoever's they are; for channels that are not fair.
select lane.key, w.seq, w.size, w.rank, w.troubled
  from json_each(:lanes) as lane
 cross join carrick_work as w
    on w.seq in (select z.seq from carrick_work as z
                  where z.channel = :channel and z.tenant_id = lane.value and z.batch_id is null
                    and z.rank >= :floor and z.rank <= :horizon and z.due <= :now and z.special = 0
                    and (z.principal is null or z.principal not in (select value from json_each(:held_principals)))
                  order by z.rank, z.seq limit :rows)
 order by w.rank, w.seq limit :rows
