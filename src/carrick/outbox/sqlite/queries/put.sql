-- Puts one entry in the caller's transaction. One statement, so it is whole or nothing even without a transaction; it
-- inserts nothing when there is a problem or the key is known (G6), and put_problem.sql then tells which. The triggers of
-- 0002 do the rest.
insert into carrick_record (id, channel, tenant_id, principal, group_key, event_type, key, payload, headers, priority,
                            traceparent, occurred_at, created_at, delay_seconds, max_wait_seconds)
select :id, c.name, :tenant_id, :principal, :group_key, :event_type, :key, :payload, :headers, :priority,
       :traceparent, :occurred_at, k.now, :delay_seconds, :max_wait_seconds
  from carrick_channel as c cross join carrick_clock as k
 where c.name = :channel and :size <= c.max_payload_bytes
   and (c.max_backlog_bytes is null
        or (:size <= c.max_backlog_bytes
            and (c.on_full = 'evict'
                 or (select b.bytes from carrick_backlog as b where b.channel = c.name) + :size <= c.max_backlog_bytes)))
   and not exists (select 1 from carrick_record as r
                    where r.channel = :channel and r.tenant_id = :tenant_id and r.key = :key)
   and not exists (select 1 from carrick_remembered_key as m
                    where m.channel = :channel and m.tenant_id = :tenant_id and m.key = :key and m.forget_at > k.now)
returning id, seq, exists (select 1 from carrick_backlog as b where b.channel = :channel)
