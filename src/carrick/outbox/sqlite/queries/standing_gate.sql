-- The closed gate that holds an entry longest: its own, or one of the frozen batch that it is part of or waits for.
select channel, scope, closed_until, reason, consecutive_failures, closed_by
  from carrick_gate
 where channel = :channel and closed_until > :now
   and (scope in ('*', 'tenant:' || :tenant_id, 'principal:' || :principal)
        or exists (select 1 from carrick_trouble as t join carrick_work as w on w.seq = t.seq
                    where t.frozen_batch = :frozen_batch and scope in ('tenant:' || w.tenant_id, 'principal:' || w.principal)))
 order by closed_until desc limit 1
