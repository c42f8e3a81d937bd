-- Forgets submissions after that many days, when their points are forgotten.
delete from carrick_score_submissions
where created_at < (select now from carrick_clock) - :days * 86400000000
  and not exists (select 1 from carrick_score_updates as u where u.submission_id = carrick_score_submissions.id)
returning id
