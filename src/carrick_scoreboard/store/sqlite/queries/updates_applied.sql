-- Which of these entries have been applied.
select entry_id from carrick_score_updates
where entry_id in (select value from json_each(:entry_ids)) and applied_at is not null
