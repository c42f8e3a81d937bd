-- Writes down the intent of a delivery; fenced by the lease's token.
select carrick.note(%(token)s::uuid, %(intent)s::jsonb, %(ids)s::uuid[])
