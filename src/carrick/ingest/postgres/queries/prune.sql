-- Forgets events past their retention, and signatures.
select carrick.prune_inbox(%(days)s::float8, %(max_rows)s::int, %(signature_seconds)s::int)
