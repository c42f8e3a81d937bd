-- Claimed entries of a tenant or of a group. All leases are opened: they are few. pin_plan.sql goes before.
select r.id
  from carrick.lease l
 cross join lateral unnest(l.ids) as h(id)
 cross join lateral carrick._record(h.id) r
 where r.tenant_id = %(text)s::text
    or (r.group_key = %(text)s::text and (%(tenant)s::text is null or r.tenant_id = %(tenant)s::text))
 limit %(rows)s::int
