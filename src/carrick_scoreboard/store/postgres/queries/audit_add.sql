-- Writes down what somebody did.
insert into carrick.audit (done_at, actor, action, subject, detail)
values (carrick.clock(), %(actor)s, %(action)s, %(subject)s, %(detail)s::jsonb)
