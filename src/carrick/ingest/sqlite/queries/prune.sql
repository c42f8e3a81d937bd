-- Forgets events that came before a time, at most so many. Goes from tenant to tenant in the index, so that it costs what it
-- removes and one look per tenant.
delete from carrick_inbox where rowid in (
  with recursive tenant (name) as (
    select * from (select x.tenant_id from carrick_inbox as x order by x.tenant_id limit 1)
    union all
    select (select x.tenant_id from carrick_inbox as x where x.tenant_id > t.name order by x.tenant_id limit 1)
      from tenant as t where t.name is not null)
  select x.rowid
    from tenant as t cross join carrick_inbox as x on x.tenant_id = t.name and x.received_at < :before
   limit :max_rows)
