-- Closes a gate for a time, or until opened.
insert into carrick_gate (channel, scope, closed_at, closed_until, reason)
values (:channel, :scope, :now, :closed_until, :reason)
on conflict (channel, scope) do update set closed_until = excluded.closed_until, reason = excluded.reason, asked = 1
