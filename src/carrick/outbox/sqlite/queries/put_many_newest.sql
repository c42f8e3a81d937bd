-- The entries that were put last, so many of them: in a transaction that has put so many, these.
select id from carrick_record where seq > (select max(seq) from carrick_record) - :count
