-- The events of a tenant that came last.
select event_id, event_type, edge_id, occurred_at, received_at
  from carrick_inbox
 where tenant_id = :tenant_id
 order by received_at desc, event_id desc
 limit :limit
