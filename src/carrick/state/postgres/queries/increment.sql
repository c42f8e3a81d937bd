-- Adds to a counter; its sum and the seconds that are left of it. No row where the value is no number. One that has ended
-- begins anew, and only then is it said when it ends. `excluded.ends_at` less the ttl is this statement's one moment.
insert into carrick.state_item as i (key, value, ends_at)
values (%(key)s, convert_to(%(by)s::bigint::text, 'UTF8'), carrick.clock() + make_interval(secs => %(ttl)s))
on conflict (key) do update
  set value = case when i.ends_at <= excluded.ends_at - make_interval(secs => %(ttl)s) then excluded.value
                   else convert_to((encode(i.value, 'escape')::bigint + %(by)s::bigint)::text, 'UTF8') end,
      ends_at = case when i.ends_at <= excluded.ends_at - make_interval(secs => %(ttl)s) then excluded.ends_at
                     else i.ends_at end
  where i.ends_at <= excluded.ends_at - make_interval(secs => %(ttl)s)
     or encode(i.value, 'escape') ~ '^(0|-?[1-9][0-9]{0,17})$'
returning encode(value, 'escape')::bigint, extract(epoch from ends_at - carrick.clock())::double precision
