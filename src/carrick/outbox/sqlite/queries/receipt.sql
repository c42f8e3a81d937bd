-- The request that a key belongs to.
select body_hash, ids from carrick_receipt where key = :key
