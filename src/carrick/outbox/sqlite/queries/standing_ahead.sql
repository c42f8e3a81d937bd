-- How many waiting entries of the tenant rank before this one, counted up to 1000.
select count(*)
  from (select 1 from carrick_work as x
         where x.channel = :channel and x.tenant_id = :tenant_id and x.batch_id is null
           and (x.rank, x.seq) < (:rank, :seq)
         limit 1000)
