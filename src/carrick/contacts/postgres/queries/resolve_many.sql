-- Several resolves of one tenant, one after the other; all locks are taken before the first change.
select contact_id, created, merged, conflicts
  from carrick.resolve_contacts(%(tenant)s::text, %(requests)s::jsonb, %(channel)s::text)
