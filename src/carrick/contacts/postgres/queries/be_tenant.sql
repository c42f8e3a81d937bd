-- Names the tenant for the row-level security policies, until the end of this transaction.
select set_config('carrick.tenant', %(tenant)s::text, true)
