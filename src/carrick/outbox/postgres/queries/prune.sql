-- Removes ended entries past their retention, at most max_rows.
select carrick._prune(%(channel)s::text, %(max_rows)s::int)
