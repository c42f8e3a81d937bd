-- Sends dead entries round again, spread over time; or counts them.
select carrick.redrive(%(channel)s::text, %(ids)s::uuid[], %(reason)s::text, %(max_rows)s::int,
                       %(spread_seconds)s::numeric, %(dry_run)s::boolean)
