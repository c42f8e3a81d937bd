-- The request that a key belongs to.
select body_hash, ids from carrick.receipt where key = %(key)s
