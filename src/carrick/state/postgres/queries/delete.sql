-- Removes a value that has not ended, or only the expected one; what was removed.
delete from carrick.state_item
where key = %(key)s and ends_at > carrick.clock() and (%(expected)s::bytea is null or value = %(expected)s)
returning value
