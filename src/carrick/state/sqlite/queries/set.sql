-- Writes a value, whatever was there. Guarded by what must be there, looked at before in the same transaction: there is
-- one writer.
insert into carrick_state_item (key, value, ends_at) values (:key, :value, (select now from carrick_clock) + :span)
on conflict (key) do update set value = excluded.value, ends_at = excluded.ends_at
