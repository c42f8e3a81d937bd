-- The one clock.
select now from carrick_clock
