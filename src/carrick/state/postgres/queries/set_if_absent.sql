-- Writes a value where there is none, or one that has ended; a row if it did. Who waits for another writer looks at what
-- that one wrote.
insert into carrick.state_item as i (key, value, ends_at)
values (%(key)s, %(value)s, carrick.clock() + make_interval(secs => %(ttl)s))
on conflict (key) do update set value = excluded.value, ends_at = excluded.ends_at where i.ends_at <= carrick.clock()
returning true
