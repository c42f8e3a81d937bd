-- Writes that were noted while the clock was ahead: how long ago is not known, so they begin to age now.
update carrick_score_doubts set noted_at = (select now from carrick_clock)
where section_id = :section_id and noted_at > (select now from carrick_clock)
