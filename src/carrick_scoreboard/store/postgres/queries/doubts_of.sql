-- The open doubts of a section, with the points they are about; and how long ago each write was about to be tried.
select d.entry_id::text as entry_id, d.write_id::text as write_id, d.patrol_id, d.base, d.target, d.found, d.given_up, u.points,
       extract(epoch from carrick.clock() - d.noted_at)::float8 as age
from carrick.score_doubts as d
join carrick.score_updates as u on u.entry_id = d.entry_id
where d.section_id = %(section_id)s
order by u.id
