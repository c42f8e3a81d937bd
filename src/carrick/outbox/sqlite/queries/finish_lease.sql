-- A lease goes when nothing is left in it.
delete from carrick_lease
 where batch_id = :batch_id and not exists (select 1 from carrick_work as w where w.batch_id = :batch_id)
