-- Forgets events that came before a time, at most so many. Goes from intake to intake, the oldest first, so that it costs what
-- it removes; the plus sign: events are found by their place. PostgreSQL's is a function that forgets the intakes, too.
delete from carrick_inbox where place in (
  select x.place
    from carrick_intake as i
   cross join carrick_inbox as x on x.place between i.first_place and i.last_place
   where i.received_at < :before and +x.received_at = i.received_at
   order by i.received_at
   limit :max_rows)
