-- The open doubts of a section; and how long ago each write was about to be tried.
select entry_id::text as entry_id, section_id, patrol_id, base, target, found, noted_at,
       extract(epoch from carrick.clock() - noted_at)::float8 as age
from carrick.score_doubts where section_id = %(section_id)s
order by noted_at, entry_id
