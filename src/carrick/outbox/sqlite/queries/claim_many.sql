-- Whether more entries of some tenant may be due than were looked at.
select exists (
  select 1 from json_each(:lanes) as lane
   where (select w.seq from carrick_work as w
           where w.channel = :channel and w.tenant_id = lane.value and w.batch_id is null
             and w.rank >= :floor and w.rank <= :horizon and w.due <= :now
           order by w.rank, w.seq limit 1 offset :look - 1) is not null)
