-- Entries of some tenants with a key. pin_plan.sql goes before.
select r.id
  from unnest(%(channels)s::text[], %(tenants)s::text[]) as p(channel, tenant_id)
  join carrick.record r on r.channel = p.channel and r.tenant_id = p.tenant_id and r.key = %(text)s::text
 limit %(rows)s::int
