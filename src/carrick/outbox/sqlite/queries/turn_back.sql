-- The clock was ahead: turns all times to come back by as much, by the trigger of 0009.
update carrick_clock_shift set seen = :now
