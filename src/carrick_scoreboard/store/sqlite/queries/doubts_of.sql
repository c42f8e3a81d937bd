-- The open doubts of a section, with the points they are about; and how long ago each write was about to be tried.
select d.entry_id, d.write_id, d.patrol_id, d.base, d.target, d.found, d.given_up, u.points,
       ((select now from carrick_clock) - d.noted_at) / 1000000.0 as age
from carrick_score_doubts as d
join carrick_score_updates as u on u.entry_id = d.entry_id
where d.section_id = :section_id
order by u.id
