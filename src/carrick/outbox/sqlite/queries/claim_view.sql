-- What a claim must know before it picks: the time, how far ahead the clock was before, whether a lease has ended, there are gates, entries come back apart, or some
-- have low priority.
select c.now,
       (select s.seen from carrick_clock_shift as s) - c.now,
       exists (select 1 from carrick_lease as l where l.channel = :channel and l.expires_at <= c.now),
       exists (select 1 from carrick_gate as g where g.channel = :channel),
       exists (select 1 from carrick_work as w
                where w.channel = :channel and w.special = 1 and w.batch_id is null and w.due <= c.now),
       exists (select 1 from carrick_work as w where w.channel = :channel and w.priority < 0 and w.batch_id is null)
  from carrick_clock as c
