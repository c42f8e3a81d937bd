-- It is known what became of the write.
delete from carrick_score_doubts where entry_id = :entry_id
