-- Forgets requests that were done so long ago that nobody asks again.
delete from carrick_receipt where made_at < (select now from carrick_clock) - :age
