-- A relay is awake.
select carrick._stir(%(channel)s::text, %(owner)s::text)
