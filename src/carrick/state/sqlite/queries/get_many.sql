-- The values of these keys (a JSON list) that have not ended. Guarded by the epoch, which is looked at before.
select key, value from carrick_state_item
where epoch = :epoch and key in (select value from json_each(:keys)) and ends_at > (select now from carrick_clock)
