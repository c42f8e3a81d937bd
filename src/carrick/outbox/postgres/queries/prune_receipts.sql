-- Forgets requests that were done so long ago that nobody asks again.
delete from carrick.receipt where made_at < carrick.clock() - %(seconds)s * interval '1 second'
