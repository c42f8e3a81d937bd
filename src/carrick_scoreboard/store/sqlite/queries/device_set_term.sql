-- The term of a section as a user sees it, for all their devices there.
update carrick_devices set term_id = :term_id, term_end_date = :term_end_date,
       term_checked_at = (select now from carrick_clock)
where osm_user_id = :osm_user_id and section_id = :section_id
returning id
