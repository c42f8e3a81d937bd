-- An update has been applied. Guarded: once.
update carrick_score_updates
set applied_at = (select now from carrick_clock), previous_score = :previous_score, new_score = :new_score,
       discarded_at = null,
    patrol_name = coalesce(nullif(:patrol_name, ''), patrol_name)
where entry_id = :entry_id and applied_at is null
returning id
