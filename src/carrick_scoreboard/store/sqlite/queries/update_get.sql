-- One update, and where its entry is.
select * from carrick_score_update_state
where id = :id
