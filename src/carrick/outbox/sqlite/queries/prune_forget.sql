-- Keys that were remembered long enough.
delete from carrick_remembered_key where channel = :channel and forget_at <= :now
