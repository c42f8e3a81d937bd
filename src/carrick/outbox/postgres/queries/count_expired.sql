-- How many entries ended leases hold.
select coalesce(sum(cardinality(l.seqs)), 0)::int
  from carrick.lease l
 where l.channel = %(channel)s::text and l.expires_at <= carrick.clock()
