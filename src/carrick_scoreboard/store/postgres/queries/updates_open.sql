-- Whether anything of a section is neither applied nor discarded. Asked for every display, so it must cost nothing.
select 1 as one from carrick.score_updates
where section_id = %(section_id)s and applied_at is null and discarded_at is null limit 1
