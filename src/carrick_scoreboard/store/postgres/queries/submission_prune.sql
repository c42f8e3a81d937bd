-- Forgets submissions after that many days, when their points are forgotten.
delete from carrick.score_submissions as s
where s.created_at < carrick.clock() - make_interval(days => %(days)s)
  and not exists (select 1 from carrick.score_updates as u where u.submission_id = s.id)
returning s.id
