-- The facts about where one entry stands.
select e.id, s.now, e.channel, e.tenant_id, e.principal, e.group_key, e.event_type, e.state, e.created_at,
       e.attempt_count, e.crash_count, e.next_attempt_at, e.last_attempt_at, e.last_error_code, e.last_error_message,
       e.claimed_by, e.claimed_at, e.lease_expires_at, e.delivered_at, e.failed_at, e.dlq_reason,
       s.frozen, s.gate_scope, nullif(s.gate_until, 'infinity'), s.gate_reason, s.gate_failures, s.gate_closed_by, s.blocked_by,
       s.group_held, s.group_due_at, s.rank_ahead
  from carrick.entry e cross join lateral carrick._standing(e.id) s
 where e.id = %(id)s::uuid
