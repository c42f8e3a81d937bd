-- Everything in a batch is delivered; the caller has found the batch by its lease's token.
insert into carrick_ended (seq, channel, state, ended_at, attempt_count, crash_count, last_error_code, last_error_message)
select w.seq, w.channel, 'delivered', :now, coalesce(t.attempt_count, 0) + 1, coalesce(t.crash_count, 0),
       t.last_error_code, t.last_error_message
  from carrick_work as w left join carrick_trouble as t on w.troubled = 1 and t.seq = w.seq
 where w.batch_id = :batch_id
