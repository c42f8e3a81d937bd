-- Moves the end of a lease; fenced by its token.
select carrick.renew(%(token)s::uuid, %(seconds)s::int)
