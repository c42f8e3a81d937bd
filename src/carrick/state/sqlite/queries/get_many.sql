-- The values of these keys (a JSON list) that have not ended, with the microseconds that are left of them.
select key, value, ends_at - now from carrick_state_item, carrick_clock
where key in (select value from json_each(:keys)) and ends_at > now
