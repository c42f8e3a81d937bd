-- Entries of some tenants with a key.
select r.id
  from json_each(:pairs) as p
 cross join carrick_record as r
    on r.channel = json_extract(p.value, '$[0]') and r.tenant_id = json_extract(p.value, '$[1]') and r.key = :text
 limit :rows
