-- Gives back everything under the lease unspent; fenced by its token.
select carrick.release(%(token)s::uuid)
