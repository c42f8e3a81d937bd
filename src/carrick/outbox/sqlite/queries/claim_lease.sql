-- Writes the lease of a batch. A frozen batch is one unit, and so is a coalesced group.
insert into carrick_lease (token, channel, owner, claimed_at, expires_at, units, troubled)
select :token, :channel, :owner, :now, :expires_at,
       case when :frozen then 1
            when :mode = 'coalesce' then count(distinct w.group_key) + sum(w.group_key is null) else count(*) end,
       max(w.troubled)
  from carrick_work as w where w.seq in (select value from json_each(:picked))
returning batch_id
