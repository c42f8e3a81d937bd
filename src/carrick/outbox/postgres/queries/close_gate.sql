-- Closes a gate for a time, or until opened.
select carrick.close_gate(%(channel)s::text, %(scope)s::text, %(seconds)s::numeric, %(reason)s::text, %(closed_by)s::text)
