-- Applies outcomes; fenced by the lease's token.
select id, state from carrick.finish(%(token)s::uuid, %(outcomes)s::jsonb)
