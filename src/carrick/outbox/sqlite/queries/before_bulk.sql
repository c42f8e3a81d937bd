-- The limits of the channels that a bulk put names; unknown channels are missing.
select name, max_payload_bytes, max_backlog_bytes is not null
  from carrick_channel
 where name in (select value from json_each(:channels))
