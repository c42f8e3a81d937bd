-- Takes a duty, or keeps it; whether it is the owner's now.
select carrick._take_duty(%(duty)s::text, %(owner)s::text, %(seconds)s::float8)
