-- Dead entries among those named to send round again, the oldest first.
select e.seq
  from json_each(:ids) as i
 cross join carrick_record as r on r.id = i.value
 cross join carrick_ended as e on e.seq = r.seq
 where e.channel = :channel and e.state = 'dead' and (:reason is null or e.dlq_reason = :reason)
 group by e.seq
 order by e.ended_at, e.seq limit :max_rows
