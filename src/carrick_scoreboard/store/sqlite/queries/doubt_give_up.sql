-- What the leader wants of points in doubt, should OSM turn out not to have them: nothing, or to apply them.
update carrick_score_doubts set given_up = :given_up where entry_id = :entry_id
returning entry_id
