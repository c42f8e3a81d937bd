-- An update has been applied. Guarded: once.
update carrick.score_updates
set applied_at = carrick.clock(), previous_score = %(previous_score)s, new_score = %(new_score)s, discarded_at = null,
    patrol_name = coalesce(nullif(%(patrol_name)s, ''), patrol_name)
where entry_id = %(entry_id)s and applied_at is null
returning id
