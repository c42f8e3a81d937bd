-- Dead entries wait again, spread evenly over time; nothing of their troubles is left.
insert into carrick_work (seq, id, channel, tenant_id, principal, group_key, size, priority, due, rank, evictable, loose)
select r.seq, r.id, r.channel, r.tenant_id, r.principal, r.group_key, r.payload_size_bytes, r.priority,
       :now + cast(s.key * :step as integer), :now + cast(s.key * :step as integer) - r.priority * 600000000,
       exists (select 1 from carrick_backlog as b join carrick_channel as c on c.name = b.channel
                where b.channel = r.channel and c.on_full = 'evict'),
       r.group_key is null and (select c.mode = 'ordered' from carrick_channel as c where c.name = r.channel)
  from json_each(:seqs) as s cross join carrick_record as r on r.seq = s.value
