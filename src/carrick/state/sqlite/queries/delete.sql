-- Removes a value. Guarded as set.sql.
delete from carrick_state_item where epoch = :epoch and key = :key
