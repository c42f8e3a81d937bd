-- Removes records of ended entries; those never wait nor are claimed (G2). The newest record of the file only loses what
-- it said (prune_newest.sql).
delete from carrick_record
 where seq in (select value from json_each(:seqs)) and seq < (select max(seq) from carrick_record)
