-- Entries that ended live no longer.
delete from carrick_work where seq in (select value from json_each(:seqs))
