-- Dead entries among those named, to be removed for good.
select e.seq
  from json_each(:ids) as i
 cross join carrick_record as r on r.id = i.value
 cross join carrick_ended as e on e.seq = r.seq
 where e.channel = :channel and e.state = 'dead'
 group by e.seq
