-- Adds to a counter; null where the value is no number. One that has ended begins anew, and only then is it said when it
-- ends. Guarded by the epoch: no row when it is over. `excluded.ends_at` less the ttl is this statement's one moment.
with current as materialized (
  select number from carrick.state_epoch where number = %(epoch)s
), written as (
  insert into carrick.state_item as i (epoch, key, value, ends_at)
  select number, %(key)s, convert_to(%(by)s::bigint::text, 'UTF8'), carrick.clock() + make_interval(secs => %(ttl)s)
  from current
  on conflict (epoch, key) do update
    set value = case when i.ends_at <= excluded.ends_at - make_interval(secs => %(ttl)s) then excluded.value
                     else convert_to((encode(i.value, 'escape')::bigint + %(by)s::bigint)::text, 'UTF8') end,
        ends_at = case when i.ends_at <= excluded.ends_at - make_interval(secs => %(ttl)s) then excluded.ends_at
                       else i.ends_at end
    where i.ends_at <= excluded.ends_at - make_interval(secs => %(ttl)s)
       or encode(i.value, 'escape') ~ '^(0|-?[1-9][0-9]{0,17})$'
  returning encode(value, 'escape')::bigint as sum
)
select (select sum from written) from current
