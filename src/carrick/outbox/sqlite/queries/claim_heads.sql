-- Heads as in claim_ordered.sql, from group to group, one index step each, whatever waits behind them; and of each tenant its share of
-- the entries without a group.
with recursive first (lane, tenant_id, seq, group_key) as (
  select lane.key, lane.value, w.seq, w.group_key
    from json_each(:lanes) as lane
   cross join carrick_work as w
      on w.seq = (select x.seq from carrick_work as x
                   where x.channel = :channel and x.tenant_id = lane.value and x.group_key is not null
                   order by x.group_key, x.seq limit 1)
  union all
  select f.lane, f.tenant_id, w.seq, w.group_key
    from first as f
   cross join carrick_work as w
      on w.seq = (select x.seq from carrick_work as x
                   where x.channel = :channel and x.tenant_id = f.tenant_id and x.group_key > f.group_key
                   order by x.group_key, x.seq limit 1))
select f.lane, w.seq, w.size, w.rank, w.troubled
  from first as f cross join carrick_work as w on w.seq = f.seq
 where w.batch_id is null and w.rank <= :horizon and w.due <= :now and w.special = 0
   and (w.principal is null or w.principal not in (select value from json_each(:held_principals)))
   and not exists (select 1 from carrick_work as h
                    where h.channel = :channel and h.tenant_id = f.tenant_id and h.group_key = f.group_key
                      and h.batch_id is not null)
union all
select lane.key, w.seq, w.size, w.rank, w.troubled
  from json_each(:lanes) as lane
 cross join carrick_work as w
    on w.seq in (select z.seq from carrick_work as z
                  where z.channel = :channel and z.tenant_id = lane.value and z.loose = 1 and z.batch_id is null
                    and z.rank <= :horizon and z.due <= :now and z.special = 0
                    and (z.principal is null or z.principal not in (select value from json_each(:held_principals)))
                  order by z.rank, z.seq limit :share)
 order by 1, 4, 2
