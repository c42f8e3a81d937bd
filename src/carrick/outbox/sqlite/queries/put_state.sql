-- What became of an entry just put into a bounded channel: no row when it was dead at once.
select 1 from carrick_work where seq = :seq
