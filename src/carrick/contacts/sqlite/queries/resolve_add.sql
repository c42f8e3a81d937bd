-- Identities that nobody had.
insert into carrick_contact_identities (tenant_id, contact_id, type, value, created_at)
select :tenant, :contact, json_extract(g.value, '$.type'), json_extract(g.value, '$.value'), (select now from carrick_clock)
  from json_each(:identities) g
