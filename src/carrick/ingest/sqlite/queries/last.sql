-- The place of the event that was stored last.
select coalesce(max(rowid), 0) from carrick_inbox
