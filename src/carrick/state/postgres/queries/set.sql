-- Writes a value, whatever was there.
insert into carrick.state_item (key, value, ends_at)
values (%(key)s, %(value)s, carrick.clock() + make_interval(secs => %(ttl)s))
on conflict (key) do update set value = excluded.value, ends_at = excluded.ends_at
