-- Counts a failure and closes the gate for longer; how long it is closed now.
select carrick.fail_gate(%(channel)s::text, %(scope)s::text, %(reason)s::text, %(cap_seconds)s::numeric, %(probe)s::boolean)
