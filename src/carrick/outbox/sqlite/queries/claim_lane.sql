-- Independent entries of one tenant that are due, the oldest ranks first; as claim_stream.sql, without a sort.
select 0, z.seq, z.size, z.rank, z.troubled
  from carrick_work as z
 where z.channel = :channel and z.tenant_id = :tenant and z.batch_id is null
   and z.rank >= :floor and z.rank <= :horizon and z.due <= :now and z.special = 0
   and (z.principal is null or z.principal not in (select value from json_each(:held_principals)))
 order by z.rank, z.seq limit :rows
