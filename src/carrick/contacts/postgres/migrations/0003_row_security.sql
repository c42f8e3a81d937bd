-- Row-level security as an option. Every table that holds a tenant's data has the policy `carrick_tenant`; it does nothing until
-- enable_row_security() is called. Then a role that does not own the tables sees and writes only rows of the tenant that
-- `carrick.tenant` names; set it for one transaction: select set_config('carrick.tenant', 'acme', true). Without it there are none.
-- The owner of the tables and roles with BYPASSRLS see all. No function here runs with the rights of its owner.

create policy carrick_tenant on carrick.contacts
  using (tenant_id = current_setting('carrick.tenant', true)) with check (tenant_id = current_setting('carrick.tenant', true));
create policy carrick_tenant on carrick.contact_identities
  using (tenant_id = current_setting('carrick.tenant', true)) with check (tenant_id = current_setting('carrick.tenant', true));
create policy carrick_tenant on carrick.contact_conflicts
  using (tenant_id = current_setting('carrick.tenant', true)) with check (tenant_id = current_setting('carrick.tenant', true));
create policy carrick_tenant on carrick.contact_tenants
  using (tenant_id = current_setting('carrick.tenant', true)) with check (tenant_id = current_setting('carrick.tenant', true));

create function carrick._set_row_security(p_how text) returns void
  language plpgsql as $$
declare
  v_table text;
begin
  for v_table in select p.tablename from pg_policies p where p.schemaname = 'carrick' and p.policyname = 'carrick_tenant' loop
    execute format('alter table carrick.%I %s row level security', v_table, p_how);
  end loop;
end $$;

create function carrick.enable_row_security() returns void
  language sql as $$ select carrick._set_row_security('enable') $$;
create function carrick.disable_row_security() returns void
  language sql as $$ select carrick._set_row_security('disable') $$;
