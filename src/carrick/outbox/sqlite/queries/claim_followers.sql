-- What stands behind the heads in their groups, in order, so many per head; and whether each may go now.
select head.key, z.seq, z.size, z.rank, z.troubled,
       z.due <= :now and z.rank >= :floor and z.special = 0
       and (z.principal is null or z.principal not in (select value from json_each(:held_principals)))
  from json_each(:heads) as head
 cross join carrick_work as h on h.seq = head.value
 cross join carrick_work as z
    on z.seq in (select y.seq from carrick_work as y
                  where y.channel = h.channel and y.tenant_id = h.tenant_id and y.group_key = h.group_key
                    and y.seq > h.seq
                  order by y.seq limit :followers)
 order by head.key, z.seq
