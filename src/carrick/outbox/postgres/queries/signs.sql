-- What the database knows of those who work with it: duties, leases with how many entries, relays that rest.
select d.owner, 'duty' as doing, d.name as what, 1 as entries, null::timestamptz as since, d.until from carrick.duty d
union all
select l.owner, 'lease', l.channel, sum(cardinality(l.seqs))::int, max(l.claimed_at), max(l.expires_at)
  from carrick.lease l group by l.owner, l.channel
union all
select s.owner, 'rest', s.channel, 1, null, s.until from carrick.sleeper s
 order by 1, 2, 3 limit %(rows)s::int
