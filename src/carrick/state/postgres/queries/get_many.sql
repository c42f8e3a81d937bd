-- The values of these keys that have not ended.
select key, value from carrick.state_item where key = any(%(keys)s::text[]) and ends_at > carrick.clock()
