-- What a bulk put knows of its channels, and the time; unknown channels are missing.
select c.name, c.max_payload_bytes, c.max_backlog_bytes is not null,
       exists (select 1 from carrick_remembered_key as m where m.channel = c.name), k.now
  from carrick_channel as c cross join carrick_clock as k
 where c.name in (select value from json_each(:channels))
