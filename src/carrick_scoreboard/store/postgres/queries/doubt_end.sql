-- It is known what became of the write.
delete from carrick.score_doubts where entry_id = %(entry_id)s
