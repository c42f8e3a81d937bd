-- The entries of an ended lease wait again, where they stood.
update carrick_work
   set batch_id = null, max_wait_at = null, delayed = 0, troubled = 1, special = 1
 where batch_id = :batch_id
