-- A delivered batch lives no longer.
delete from carrick_work where batch_id = :batch_id
