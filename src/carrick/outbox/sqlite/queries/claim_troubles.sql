-- What went wrong before with the entries being claimed; most batches have none.
select t.seq, t.attempt_count, t.crash_count, t.intent
  from json_each(:picked) as p
 cross join carrick_trouble as t on t.seq = p.value
