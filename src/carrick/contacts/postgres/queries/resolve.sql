-- Finds, makes or merges the one contact, in the caller's transaction; the function takes the locks and puts the events.
select contact_id, created, merged, conflicts
  from carrick.resolve_contact(%(tenant)s::text, %(identities)s::jsonb, %(traits)s::jsonb, %(channel)s::text)
