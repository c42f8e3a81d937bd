-- Everything under the lease is delivered; fenced by its token.
select id, state from carrick.finish_all(%(token)s::uuid)
