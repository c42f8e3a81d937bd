-- An update has been applied. Guarded: once. One that was discarded all the same takes nothing back by name: another may do so by now.
update carrick.score_updates
set applied_at = carrick.clock(), previous_score = %(previous_score)s, new_score = %(new_score)s, discarded_at = null,
    undo_of = case when discarded_at is null then undo_of end,
    patrol_name = coalesce(nullif(%(patrol_name)s, ''), patrol_name)
where entry_id = %(entry_id)s and applied_at is null
returning id
