-- Changes a counter that is there, and lets it end when it would have. Guarded as set.sql.
update carrick_state_item set value = :value where key = :key
