-- Entries of a tenant or of a group that are delivered. Whose they are stands in the record, so the newest `look` of a channel are looked at;
-- the one behind them comes back as null: there are older ones.
select case when seen.n <= :look then r.id end
  from (select looked.seq, row_number() over (order by looked.ended_at desc) as n
          from (select e.seq, e.ended_at from carrick_ended as e
                 where e.channel = :channel and e.state = 'delivered'
                 order by e.ended_at desc limit :look + 1) as looked) as seen
 cross join carrick_record as r on r.seq = seen.seq
 where seen.n > :look or r.tenant_id = :text or (r.group_key = :text and (:tenant is null or r.tenant_id = :tenant))
 order by seen.n > :look desc, seen.n limit :rows
