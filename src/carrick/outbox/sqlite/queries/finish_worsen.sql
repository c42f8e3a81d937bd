-- An attempt was spent in vain. One that ran to its end clears the suspicion of a crash.
insert into carrick_trouble (seq, attempt_count, last_attempt_at, last_error_code, last_error_message, intent, frozen_batch)
values (:seq, :attempt_count, :last_attempt_at, :last_error_code, :last_error_message, :intent, :frozen_batch)
on conflict (seq) do update
  set attempt_count = excluded.attempt_count, crash_count = 0, last_attempt_at = excluded.last_attempt_at,
      last_error_code = excluded.last_error_code, last_error_message = excluded.last_error_message,
      intent = excluded.intent, batch_cap = null, frozen_batch = excluded.frozen_batch
