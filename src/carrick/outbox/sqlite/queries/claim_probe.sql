-- One entry goes ahead through a half-open gate: until its lease ends nobody else does.
update carrick_gate set closed_until = :closed_until, asked = 0 where channel = :channel and scope = '*'
