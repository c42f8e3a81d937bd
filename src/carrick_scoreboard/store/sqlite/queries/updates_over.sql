-- Which of these entries are over, and whether they were applied; the others were discarded.
select entry_id, applied_at is not null as applied from carrick_score_updates
where entry_id in (select value from json_each(:entry_ids)) and (applied_at is not null or discarded_at is not null)
