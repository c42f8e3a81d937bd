-- Opens a gate.
select carrick.open_gate(%(channel)s::text, %(scope)s::text, %(closed_by)s::text)
