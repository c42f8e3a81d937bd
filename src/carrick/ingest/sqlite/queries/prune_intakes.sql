-- Forgets the intakes before a time of which no event is left. Looks at the oldest until one has events: prune empties those first.
delete from carrick_intake where received_at < coalesce((
  select i.received_at
    from carrick_intake as i
   where i.received_at < :before
     and exists (select 1 from carrick_inbox as x
                  where x.place between i.first_place and i.last_place and +x.received_at = i.received_at)
   order by i.received_at
   limit 1), :before)
