-- Which events the outbox knows as keys of entries, or remembers; by their place in the list. Materialized, because a list within
-- the list is read anew by each `->>`.
with asked as materialized (
  select key as place, value ->> 0 as channel, value ->> 1 as tenant_id, value ->> 2 as key from json_each(:keys))
select a.place
  from asked as a
 where exists (select 1 from carrick_record as r
                where r.channel = a.channel and r.tenant_id = a.tenant_id and r.key = a.key)
    or exists (select 1 from carrick_remembered_key as m
                where m.channel = a.channel and m.tenant_id = a.tenant_id and m.key = a.key
                  and m.forget_at > (select now from carrick_clock))
