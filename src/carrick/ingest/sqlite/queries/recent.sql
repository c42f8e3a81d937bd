-- The events of a tenant that came last: from its newest intake to older ones, until there are enough. The plus signs: events are
-- found by their place, not by the tenant.
select x.event_id, x.event_type, x.edge_id, x.occurred_at, x.received_at
  from carrick_intake as i
 cross join carrick_inbox as x on x.place between i.first_place and i.last_place
 where i.tenant_id = :tenant_id and +x.tenant_id = i.tenant_id and +x.received_at = i.received_at
 order by i.received_at desc, x.event_id desc
 limit :limit
