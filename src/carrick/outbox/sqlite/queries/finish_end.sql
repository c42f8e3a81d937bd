-- An entry is delivered or dead.
insert into carrick_ended (seq, channel, state, ended_at, attempt_count, crash_count, last_error_code, last_error_message,
                           dlq_reason)
values (:seq, :channel, :state, :ended_at, :attempt_count, :crash_count, :last_error_code, :last_error_message, :dlq_reason)
