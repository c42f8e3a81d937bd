-- What the database knows of those who work with it: duties, leases with how many entries. Relays that rest do not say so here.
select d.owner, 'duty' as doing, d.name as what, 1 as entries, null as since, d.until as until from carrick_duty as d
union all
select l.owner, 'lease', l.channel, sum((select count(*) from carrick_work as w where w.batch_id = l.batch_id)),
       max(l.claimed_at), max(l.expires_at)
  from carrick_lease as l group by l.owner, l.channel
 order by 1, 2, 3 limit :rows
