-- Which of some sections have anything that is neither applied nor discarded. Asked for every display, so it must cost nothing.
select distinct section_id from carrick.score_updates
where section_id = any(%(section_ids)s::bigint[]) and applied_at is null and discarded_at is null
