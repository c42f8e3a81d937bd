-- An update has been applied. Guarded: once. One that was discarded all the same takes nothing back by name: another may do so by now.
update carrick_score_updates
set applied_at = (select now from carrick_clock), previous_score = :previous_score, new_score = :new_score, discarded_at = null,
    undo_of = case when discarded_at is null then undo_of end,
    patrol_name = coalesce(nullif(:patrol_name, ''), patrol_name)
where entry_id = :entry_id and applied_at is null
returning id
