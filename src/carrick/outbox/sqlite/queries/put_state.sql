-- What became of an entry just put into a bounded channel: a row when it was dead at once.
select 1 from carrick_ended where seq = :seq and state = 'dead'
