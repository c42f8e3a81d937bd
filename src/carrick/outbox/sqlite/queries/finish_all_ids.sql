-- The entries of a batch that is about to be delivered.
select id, size from carrick_work where batch_id = :batch_id
