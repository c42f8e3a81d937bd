-- A worker died with these entries: they come back in batches at most half as large; one that was alone counts a crash. An intent is
-- kept by those it was about.
insert into carrick_trouble (seq, crash_count, intent, batch_cap)
select w.seq, :units = 1, case when :noted is null or w.id in (select value from json_each(:noted)) then :intent end, max(1, :units / 2)
  from carrick_work as w where w.batch_id = :batch_id
on conflict (seq) do update
  set crash_count = crash_count + excluded.crash_count, intent = coalesce(excluded.intent, intent),
      batch_cap = excluded.batch_cap
