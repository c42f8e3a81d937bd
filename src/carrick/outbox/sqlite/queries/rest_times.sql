-- What a relay that rests waits for beside entries: the end of a lease, the end of a closed gate (not one without an end); and
-- whether the channel itself is closed, and some entries have low priority.
select (select min(l.expires_at) from carrick_lease as l where l.channel = :channel),
       (select min(g.closed_until) from carrick_gate as g
         where g.channel = :channel and g.closed_until > :now and g.closed_until < :forever),
       exists (select 1 from carrick_gate as g where g.channel = :channel and g.scope = '*' and g.closed_until > :now),
       exists (select 1 from carrick_work as w where w.channel = :channel and w.priority < 0 and w.batch_id is null)
