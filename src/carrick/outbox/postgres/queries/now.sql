-- The one clock.
select carrick.clock()
