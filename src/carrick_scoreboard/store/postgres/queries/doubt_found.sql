-- Neither what was there before nor what was to be: this was found.
update carrick.score_doubts set found = %(found)s where entry_id = %(entry_id)s and write_id = %(write_id)s
