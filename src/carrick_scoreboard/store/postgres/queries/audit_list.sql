-- The latest acts about a subject, or of all, the newest first.
select id, done_at, actor, action, subject, detail::text as detail from carrick.audit
where %(subject)s::text is null or subject = %(subject)s
order by id desc limit %(limit)s
