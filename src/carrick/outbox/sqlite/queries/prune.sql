-- Removes records of ended entries; those never wait nor are claimed (G2).
delete from carrick_record where seq in (select value from json_each(:seqs))
