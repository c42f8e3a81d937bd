-- Of entries that are being claimed: the intent of the oldest doubt in their group, which stands behind the gate of its principal.
select w.seq,
       (select t.intent from carrick_work as e join carrick_trouble as t on t.seq = e.seq
         where e.channel = w.channel and e.tenant_id = w.tenant_id and e.group_key = w.group_key and e.special = 1
           and t.frozen_batch is not null and t.intent is not null
         order by e.seq limit 1)
  from json_each(:picked) as p cross join carrick_work as w on w.seq = p.value
 where w.group_key is not null
