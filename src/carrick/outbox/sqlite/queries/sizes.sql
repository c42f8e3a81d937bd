-- The bytes of live entries together.
select coalesce(sum(size), 0) from carrick_work where seq in (select value from json_each(:seqs))
