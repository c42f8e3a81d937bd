-- Ends and forgets links that were made that many days ago.
delete from carrick.board_links where created_at < carrick.clock() - make_interval(days => %(days)s) returning section_id
