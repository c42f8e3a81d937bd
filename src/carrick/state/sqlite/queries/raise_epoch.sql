-- Begins the next epoch. Guarded by the number: who comes second changes nothing.
update carrick_state_epoch
set number = number + 1, name = :name, run = :run, failures = :failures, changed_at = (select now from carrick_clock)
where number = :number
