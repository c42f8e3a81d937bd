-- It is known what became of the write; without its id, of any write of that entry.
delete from carrick_score_doubts where entry_id = :entry_id and write_id = coalesce(:write_id, write_id)
