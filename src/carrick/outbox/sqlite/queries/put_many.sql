-- Puts entries whose keys are new, in the order given, without a look at backlogs: before_bulk.sql has looked. Those whose key is
-- known, remembered or comes twice are left out; the answer has the others.
-- Materialized, because a list within the list is read anew by each `->>`.
with given as materialized (select value from json_each(:entries))
insert into carrick_record (id, channel, tenant_id, principal, group_key, event_type, key, payload, headers, priority,
                            traceparent, occurred_at, created_at, delay_seconds, max_wait_seconds)
select value ->> 13, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8,
       value ->> 9, value ->> 10, :now, value ->> 11, value ->> 12
  from given
 where not exists (select 1 from carrick_remembered_key as m
                    where m.channel = value ->> 0 and m.tenant_id = value ->> 1 and m.key = value ->> 5 and m.forget_at > :now)
on conflict (channel, tenant_id, key) where key is not null do nothing
returning id
