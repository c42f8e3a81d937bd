-- Returns entries of leases that ended that long ago.
select carrick.release_expired(%(channel)s::text, %(older_than_seconds)s::numeric)
