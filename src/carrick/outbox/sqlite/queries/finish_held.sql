-- The entries held in a batch, with what is known about their troubles.
select w.seq, w.id, w.tenant_id, w.group_key, w.size, w.priority, w.due, t.seq is not null,
       coalesce(t.attempt_count, 0), coalesce(t.crash_count, 0), t.last_error_code, t.last_error_message, t.intent,
       t.batch_cap, t.frozen_batch
  from carrick_work as w left join carrick_trouble as t on w.troubled = 1 and t.seq = w.seq
 where w.batch_id = :batch_id
 order by w.seq
