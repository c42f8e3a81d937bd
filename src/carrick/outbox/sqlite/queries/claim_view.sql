-- What a claim must know before it picks: whether a lease has ended, entries come back apart, or some have low priority.
select exists (select 1 from carrick_lease as l where l.channel = :channel and l.expires_at <= :now),
       exists (select 1 from carrick_work as w
                where w.channel = :channel and w.special = 1 and w.batch_id is null and w.due <= :now),
       exists (select 1 from carrick_work as w where w.channel = :channel and w.priority < 0 and w.batch_id is null)
