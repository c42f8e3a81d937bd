-- The tenant served last.
select tenant_id from carrick_turn where channel = :channel and fresh = :fresh
