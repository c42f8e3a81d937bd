-- The troubles of entries that ended are over.
delete from carrick_trouble where seq in (select value from json_each(:seqs))
