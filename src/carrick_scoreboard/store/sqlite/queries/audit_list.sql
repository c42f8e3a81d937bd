-- The latest acts about a subject, or of all, the newest first.
select id, done_at, actor, action, subject, detail from carrick_audit
where :subject is null or subject = :subject
order by id desc limit :limit
