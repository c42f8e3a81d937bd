-- A person has seen what was found after that write, and says what is right: only this ends a doubt without reading.
delete from carrick.score_doubts where entry_id = %(entry_id)s and write_id = %(write_id)s and found = %(found)s
