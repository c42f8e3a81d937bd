-- Writes that were noted while the clock was ahead: how long ago is not known, so they begin to age now.
update carrick.score_doubts set noted_at = carrick.clock()
where section_id = %(section_id)s and noted_at > carrick.clock()
