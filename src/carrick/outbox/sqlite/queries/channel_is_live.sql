-- Whether the channel has entries that wait or are claimed.
select 1 where exists (select 1 from carrick_work as w where w.channel = :name and w.batch_id is null)
            or exists (select 1 from carrick_lease as l where l.channel = :name)
