-- Entries of a tenant or of a group that are dead. Whose they are stands in the record, so the newest `look` of a channel are looked at;
-- the one behind them comes back as null: there are older ones. pin_plan.sql goes before.
select case when seen.n <= %(look)s::int then r.id end
  from (select looked.id, row_number() over (order by looked.ended_at desc, looked.seq desc) as n
          from (select e.id, e.seq, e.ended_at from carrick.ended e
                 where e.channel = %(channel)s::text and e.state = 'dead'
                 order by e.ended_at desc, e.seq desc limit %(look)s::int + 1) as looked) as seen
 cross join lateral carrick._record(seen.id) r
 where seen.n > %(look)s::int or r.tenant_id = %(text)s::text
    or (r.group_key = %(text)s::text and (%(tenant)s::text is null or r.tenant_id = %(tenant)s::text))
 order by seen.n > %(look)s::int desc, seen.n limit %(rows)s::int
