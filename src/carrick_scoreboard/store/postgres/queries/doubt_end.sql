-- It is known what became of the write; without its id, of any write of that entry.
delete from carrick.score_doubts where entry_id = %(entry_id)s and write_id = coalesce(%(write_id)s::uuid, write_id)
