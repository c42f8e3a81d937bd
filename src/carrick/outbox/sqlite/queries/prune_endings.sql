-- Removes how entries ended.
delete from carrick_ended where seq in (select value from json_each(:seqs))
