-- It is known what became of the write of an entry, and whether the leader has given its points up meanwhile.
delete from carrick.score_doubts where entry_id = %(entry_id)s and write_id = %(write_id)s
returning given_up
