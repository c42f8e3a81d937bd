-- The leases of a token: none when they have moved on.
select batch_id, channel, troubled, intent, noted from carrick_lease where token = :token order by batch_id
