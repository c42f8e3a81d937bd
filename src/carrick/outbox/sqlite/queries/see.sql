-- Takes note of the time, once a minute, as the triggers of 0009 do for other writes.
update carrick_clock_shift set seen = (select now from carrick_clock) where seen < (select now from carrick_clock) - 60000000
