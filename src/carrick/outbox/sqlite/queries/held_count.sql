-- How many entries are held under a token.
select count(*) from carrick_lease as l cross join carrick_work as w on w.batch_id = l.batch_id where l.token = :token
