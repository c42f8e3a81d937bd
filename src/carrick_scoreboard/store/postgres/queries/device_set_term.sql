-- The term of a section as a user sees it, for all their devices there.
update carrick.devices set term_id = %(term_id)s, term_end_date = %(term_end_date)s, term_checked_at = carrick.clock()
where osm_user_id = %(osm_user_id)s and section_id = %(section_id)s
returning id
