-- What people look at: times as ISO 8601 text in UTC. `carrick_entry` is one branch per place an entry can be in, so that a
-- filter on state reads only there.

create view carrick_entry as
select e.id, e.seq, e.channel, e.tenant_id, e.principal, e.group_key, e.event_type, e.key, e.payload, e.headers,
       e.payload_size_bytes, e.priority, e.traceparent,
       -- data of the producer, perhaps before 1970: rounded down, not towards zero
       strftime('%Y-%m-%dT%H:%M:%S', (e.occurred_at - ((e.occurred_at % 1000000) + 1000000) % 1000000) / 1000000, 'unixepoch')
         || printf('.%06dZ', ((e.occurred_at % 1000000) + 1000000) % 1000000) as occurred_at,
       strftime('%Y-%m-%dT%H:%M:%S', e.created_at / 1000000, 'unixepoch') || printf('.%06dZ', e.created_at % 1000000)
         as created_at,
       e.state,
       strftime('%Y-%m-%dT%H:%M:%S', e.next_attempt_at / 1000000, 'unixepoch') || printf('.%06dZ', e.next_attempt_at % 1000000)
         as next_attempt_at,
       e.attempt_count, e.crash_count,
       strftime('%Y-%m-%dT%H:%M:%S', e.last_attempt_at / 1000000, 'unixepoch') || printf('.%06dZ', e.last_attempt_at % 1000000)
         as last_attempt_at,
       e.last_error_code, e.last_error_message, e.claimed_by,
       strftime('%Y-%m-%dT%H:%M:%S', e.claimed_at / 1000000, 'unixepoch') || printf('.%06dZ', e.claimed_at % 1000000)
         as claimed_at,
       e.lease_token,
       strftime('%Y-%m-%dT%H:%M:%S', e.lease_expires_at / 1000000, 'unixepoch')
         || printf('.%06dZ', e.lease_expires_at % 1000000) as lease_expires_at,
       e.batch_id, e.intent,
       strftime('%Y-%m-%dT%H:%M:%S', e.delivered_at / 1000000, 'unixepoch') || printf('.%06dZ', e.delivered_at % 1000000)
         as delivered_at,
       strftime('%Y-%m-%dT%H:%M:%S', e.failed_at / 1000000, 'unixepoch') || printf('.%06dZ', e.failed_at % 1000000)
         as failed_at,
       e.dlq_reason
  from (
    select r.*, 'pending' as state, w.due as next_attempt_at, coalesce(t.attempt_count, 0) as attempt_count,
           coalesce(t.crash_count, 0) as crash_count, t.last_attempt_at, t.last_error_code, t.last_error_message,
           null as claimed_by, null as claimed_at, null as lease_token, null as lease_expires_at,
           t.frozen_batch as batch_id, t.intent, null as delivered_at, null as failed_at, null as dlq_reason
      from carrick_record as r
      join carrick_work as w on w.seq = r.seq
      left join carrick_trouble as t on w.troubled = 1 and t.seq = w.seq
     where w.batch_id is null
    union all
    select r.*, 'claimed', w.due, coalesce(t.attempt_count, 0), coalesce(t.crash_count, 0), t.last_attempt_at,
           t.last_error_code, t.last_error_message, l.owner, l.claimed_at, l.token, l.expires_at,
           cast(l.batch_id as text), coalesce(l.intent, t.intent), null, null, null
      from carrick_record as r
      join carrick_work as w on w.seq = r.seq
      join carrick_lease as l on l.batch_id = w.batch_id
      left join carrick_trouble as t on w.troubled = 1 and t.seq = w.seq
     where w.batch_id is not null
    union all
    select r.*, x.state, null, x.attempt_count, x.crash_count, case when x.attempt_count > 0 then x.ended_at end,
           x.last_error_code, x.last_error_message, null, null, null, null, null, null,
           case when x.state = 'delivered' then x.ended_at end, case when x.state = 'dead' then x.ended_at end,
           x.dlq_reason
      from carrick_record as r
      join carrick_ended as x on x.seq = r.seq) as e;
