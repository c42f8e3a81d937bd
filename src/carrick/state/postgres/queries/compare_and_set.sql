-- Writes a value over the expected one, if that has not ended; a row if it did.
update carrick.state_item
set value = %(value)s, ends_at = carrick.clock() + make_interval(secs => %(ttl)s)
where key = %(key)s and value = %(expected)s and ends_at > carrick.clock()
returning true
