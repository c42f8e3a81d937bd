-- The number of the newest message that ever was.
select coalesce((select seq from sqlite_sequence where name = 'carrick_state_message'), 0)
