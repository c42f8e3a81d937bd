-- Forgets submissions of which everything is over, after that many days.
delete from carrick.score_submissions as s
where s.created_at < carrick.clock() - make_interval(days => %(days)s)
  and not exists (select 1 from carrick.score_updates as u
                  where u.submission_id = s.id and u.applied_at is null and u.discarded_at is null)
returning s.id
