-- One entry goes ahead through a half-open gate: until its lease ends nobody else does.
update carrick_gate set closed_until = :closed_until, closed_by = 'failures' where channel = :channel and scope = '*'
