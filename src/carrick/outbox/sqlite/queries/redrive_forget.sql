-- Entries sent round again have not ended.
delete from carrick_ended where seq in (select value from json_each(:seqs))
