-- Removes the record that an earlier prune emptied, when it is the newest no more.
delete from carrick_record where id = 'pruned' and seq < (select max(seq) from carrick_record)
