-- Writes down what somebody did.
insert into carrick_audit (done_at, actor, action, subject, detail)
values ((select now from carrick_clock), :actor, :action, :subject, :detail)
