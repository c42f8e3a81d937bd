-- The epoch, and how many microseconds ago it began.
select number, name, run, failures, (select now from carrick_clock) - changed_at from carrick_state_epoch
