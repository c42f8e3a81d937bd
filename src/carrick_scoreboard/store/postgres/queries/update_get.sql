-- One update, and where its entry is.
select * from carrick.score_update_state
where id = %(id)s
