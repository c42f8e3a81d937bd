-- Closes a gate for a time, or until opened. While it is closed, what a person closed is for persons only to change; what the
-- destination asked for, the destination may lengthen; what failures closed, anybody may change.
insert into carrick_gate (channel, scope, closed_at, closed_until, reason, closed_by)
values (:channel, :scope, :now, :closed_until, :reason, :closed_by)
on conflict (channel, scope) do update
  set closed_until = excluded.closed_until, reason = excluded.reason, closed_by = excluded.closed_by
  where excluded.closed_by = 'person' or carrick_gate.closed_by = 'failures' or carrick_gate.closed_until <= :now
     or (excluded.closed_by = 'destination' and carrick_gate.closed_by = 'destination'
         and carrick_gate.closed_until < excluded.closed_until)
