-- A relay rests: whether it had to say so (then nothing else is told), when something is due, whether a put may be unseen.
select wrote, due_in, unseen from carrick._rest(%(channel)s::text, %(owner)s::text, %(seconds)s::float8)
