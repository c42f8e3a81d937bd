-- Which of these entries have been applied.
select entry_id::text as entry_id from carrick.score_updates where entry_id = any(%(entry_ids)s::uuid[]) and applied_at is not null
