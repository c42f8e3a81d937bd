-- Puts entries without a look at keys or backlogs, in the order given; before_bulk.sql and known_keys.sql have looked.
-- One statement, so all or nothing. Materialized, because a list within the list is read anew by each `->>`.
with given as materialized (select value from json_each(:entries))
insert into carrick_record (id, channel, tenant_id, principal, group_key, event_type, key, payload, headers, priority,
                            traceparent, occurred_at, created_at, delay_seconds, max_wait_seconds)
select value ->> 13, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8,
       value ->> 9, value ->> 10, (select now from carrick_clock), value ->> 11, value ->> 12
  from given
