-- The troubles of a delivered batch are over.
delete from carrick_trouble where seq in (select w.seq from carrick_work as w where w.batch_id = :batch_id)
