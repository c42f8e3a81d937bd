-- The updates of a submission, in their order, and where their entries are.
select * from carrick_score_update_state
where submission_id = :submission_id
order by id
