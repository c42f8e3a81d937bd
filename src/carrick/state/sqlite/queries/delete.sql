-- Removes a value. Guarded as set.sql.
delete from carrick_state_item where key = :key
