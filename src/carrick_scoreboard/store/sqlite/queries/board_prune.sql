-- Ends and forgets links that were made that many days ago.
delete from carrick_board_links where created_at < (select now from carrick_clock) - :days * 86400000000 returning section_id
