-- Which contact each given identity belongs to, with that contact's order of age, traits and external id.
select i.type, i.value_normalised, c.id, c.seq, c.traits,
       (select x.value_normalised from carrick_contact_identities x where x.contact_id = c.id and x.type = 'external_id')
  from json_each(:identities) g
  join carrick_contact_identities i on i.tenant_id = :tenant and i.type = json_extract(g.value, '$.type')
                                   and i.value_normalised = json_extract(g.value, '$.normalised')
  join carrick_contacts c on c.id = i.contact_id
