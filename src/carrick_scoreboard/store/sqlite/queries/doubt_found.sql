-- Neither what was there before nor what was to be: this was found.
update carrick_score_doubts set found = :found where entry_id = :entry_id and write_id = :write_id
