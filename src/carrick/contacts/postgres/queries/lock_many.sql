-- Takes the locks of several resolves at once, for a transaction that makes them by more than one call.
select carrick._lock_requests(%(tenant)s::text, carrick._requests(%(tenant)s::text, %(requests)s::jsonb))
