-- Removes dead entries for good.
select carrick.discard(%(channel)s::text, %(ids)s::uuid[])
