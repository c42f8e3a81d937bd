-- Writes a value, whatever was there. Guarded by the epoch and by what must be there, looked at before in the same
-- transaction: there is one writer.
insert into carrick_state_item (epoch, key, value, ends_at)
values (:epoch, :key, :value, (select now from carrick_clock) + :span)
on conflict (epoch, key) do update set value = excluded.value, ends_at = excluded.ends_at
