-- An entry waits again.
update carrick_work
   set batch_id = null, due = :due, rank = :due - priority * 600000000, max_wait_at = null, delayed = 0,
       troubled = :troubled, special = :special
 where seq = :seq
