-- Begins the next epoch. Guarded by the number: who comes second changes nothing.
update carrick.state_epoch
set number = number + 1, name = %(name)s, run = %(run)s, failures = %(failures)s, changed_at = carrick.clock()
where number = %(number)s
