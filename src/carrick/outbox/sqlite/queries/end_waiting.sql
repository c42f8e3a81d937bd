-- Waiting entries become dead without a delivery.
insert into carrick_ended (seq, channel, state, ended_at, attempt_count, crash_count, last_error_code, last_error_message,
                           dlq_reason)
select w.seq, w.channel, 'dead', :now, coalesce(t.attempt_count, 0), coalesce(t.crash_count, 0), t.last_error_code,
       t.last_error_message, :reason
  from carrick_work as w left join carrick_trouble as t on t.seq = w.seq
 where w.seq in (select value from json_each(:seqs))
