-- The open doubts of a section; and how long ago each write was about to be tried.
select entry_id, section_id, patrol_id, base, target, found, noted_at,
       ((select now from carrick_clock) - noted_at) / 1000000.0 as age
from carrick_score_doubts where section_id = :section_id
order by noted_at, entry_id
