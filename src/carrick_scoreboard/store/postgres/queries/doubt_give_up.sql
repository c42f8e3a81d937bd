-- What the leader wants of points in doubt, should OSM turn out not to have them: nothing, or to apply them.
update carrick.score_doubts set given_up = %(given_up)s where entry_id = %(entry_id)s
returning entry_id
