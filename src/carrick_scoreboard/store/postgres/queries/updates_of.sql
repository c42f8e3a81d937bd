-- The updates of a submission, in their order, and where their entries are.
select * from carrick.score_update_state
where submission_id = %(submission_id)s
order by id
