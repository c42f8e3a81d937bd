-- The picked entries belong to a batch from now on.
update carrick_work set batch_id = :batch_id where seq in (select value from json_each(:picked))
