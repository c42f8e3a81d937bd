-- The events that were stored last, so many of them: in a transaction that has stored so many, these.
select event_id from carrick_inbox where place > (select max(place) from carrick_inbox) - :count
