-- Which of these entries are over, and whether they were applied; the others were discarded.
select entry_id::text as entry_id, applied_at is not null as applied from carrick.score_updates
where entry_id = any(%(entry_ids)s::uuid[]) and (applied_at is not null or discarded_at is not null)
