-- Creates a channel or changes its options; refuses another mode while entries live (CK005).
select carrick.declare_channel(%(name)s::text, %(options)s::jsonb, %(said)s::text[])
