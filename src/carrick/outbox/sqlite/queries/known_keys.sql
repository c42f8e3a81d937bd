-- Which of the keys of a bulk put belong to an entry, or are remembered; by their place in the list.
select k.key
  from json_each(:keys) as k
 where exists (select 1 from carrick_record as r
                where r.channel = k.value ->> 0 and r.tenant_id = k.value ->> 1 and r.key = k.value ->> 2)
    or exists (select 1 from carrick_remembered_key as m
                where m.channel = k.value ->> 0 and m.tenant_id = k.value ->> 1 and m.key = k.value ->> 2
                  and m.forget_at > (select now from carrick_clock))
