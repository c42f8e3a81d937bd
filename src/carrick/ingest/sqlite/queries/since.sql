-- The events that were stored behind a place: in one transaction, those that it has stored.
select event_id from carrick_inbox as i where i.rowid > :last
