-- The closed gate that holds an entry longest.
select channel, scope, closed_until, reason, consecutive_failures, closed_by
  from carrick_gate
 where channel = :channel and closed_until > :now
   and scope in ('*', 'tenant:' || :tenant_id, 'principal:' || :principal)
 order by closed_until desc limit 1
