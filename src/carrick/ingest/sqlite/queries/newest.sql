-- The events that were stored last, so many of them: in a transaction that has stored so many, these.
select event_id from carrick_inbox where rowid > (select max(rowid) from carrick_inbox) - :count
