-- It is known what became of the write of an entry, and whether the leader has given its points up meanwhile.
delete from carrick_score_doubts where entry_id = :entry_id and write_id = :write_id
returning given_up
