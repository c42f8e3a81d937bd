-- One contact, a tombstone as well; the last column is what it has become.
select id, tenant_id, traits, created_at, updated_at, merged_into, merged_at, (
         with recursive chain (id, merged_into) as (
           select c.id, c.merged_into
           union all
           select n.id, n.merged_into from chain join carrick_contacts n on n.id = chain.merged_into)
         select chain.id from chain where chain.merged_into is null)
  from carrick_contacts c where c.tenant_id = :tenant and c.id = :contact
