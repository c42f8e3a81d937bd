-- Independent entries that are due, of each tenant its oldest ranks, up to its share; those picked already are left out.
select lane.key, w.seq, w.size, w.rank, w.troubled
  from json_each(:lanes) as lane
 cross join carrick_work as w
    on w.seq in (select z.seq from carrick_work as z
                  where z.channel = :channel and z.tenant_id = lane.value and z.batch_id is null
                    and z.rank >= :floor and z.rank <= :horizon and z.due <= :now and z.special = 0
                    and (z.principal is null or z.principal not in (select value from json_each(:held_principals)))
                    and z.seq not in (select value from json_each(:picked))
                  order by z.rank, z.seq limit :share)
 order by lane.key, w.rank, w.seq
