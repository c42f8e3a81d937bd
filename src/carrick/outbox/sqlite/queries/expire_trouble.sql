-- A worker died with these entries: they come back in batches at most half as large; one that was alone counts a crash.
insert into carrick_trouble (seq, crash_count, intent, batch_cap)
select w.seq, :units = 1, :intent, max(1, :units / 2) from carrick_work as w where w.batch_id = :batch_id
on conflict (seq) do update
  set crash_count = crash_count + excluded.crash_count, intent = coalesce(excluded.intent, intent),
      batch_cap = excluded.batch_cap
