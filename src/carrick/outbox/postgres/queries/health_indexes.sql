-- The indexes of Carrick's tables that can be used; one that broke off while it was built cannot.
select c.relname
  from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace n on n.oid = c.relnamespace
 where n.nspname = 'carrick' and i.indisvalid and i.indisready
