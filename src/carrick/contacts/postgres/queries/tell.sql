-- Puts one event that is about no contact.
select carrick._tell_contact(%(channel)s::text, %(tenant)s::text, null, %(event_type)s::text, %(body)s::jsonb)
