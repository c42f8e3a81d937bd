-- The functions to call: resolve_contact, and resolve_contacts for several at once.
--
-- All that is asked for is checked before the first look, and all locks that a call will need are taken before its first change, by one
-- _lock_contacts: the order told in 0002_resolve.sql holds within one call of it, not from one to the next. The answer to a call that
-- changes nothing comes from that first look: a second one without locks could find that another session has changed it.
--
-- Both functions pin the plans of all the others: lookups by key, planned once per session, whatever the statistics say.

-- What one resolve asks for, checked.
create type carrick._request as (identities carrick._identity[], traits jsonb);

-- The bytes of compact JSON text, which is what Python measures: jsonb::text has a blank behind each comma and colon, and writes
-- 1e300 with all its zeros. So outside of strings blanks are not counted, and of many zeros in a row two.
create function carrick._compact_bytes(p_json jsonb) returns int
  language sql immutable as $$
  select octet_length(p_json::text) - octet_length(o.outside)
       + octet_length(regexp_replace(replace(o.outside, ' ', ''), '0{4,}', '00', 'g'))
    from regexp_replace(p_json::text, '"(?:\\.|[^"\\])*"', '""', 'g') as o(outside)
$$;

create or replace function carrick._check_resolve(p_tenant text, p_traits jsonb) returns void
  language plpgsql as $$
begin
  if coalesce(char_length(p_tenant), 0) not between 1 and 255 then
    perform carrick._refuse('tenant', 'is empty or too long', 'text of 1 to 255 characters');
  elsif jsonb_typeof(p_traits) is distinct from 'object' then
    perform carrick._refuse('traits', 'is no object', 'a JSON object');
  elsif octet_length(p_traits::text) > 16384 and carrick._compact_bytes(p_traits) > 16384 then
    perform carrick._refuse('traits', format('has %s bytes', carrick._compact_bytes(p_traits)), 'a JSON object of at most 16384 bytes');
  end if;
end $$;

create function carrick._checked(p_tenant text, p_identities jsonb, p_traits jsonb) returns carrick._request
  language plpgsql as $$
begin
  perform carrick._check_resolve(p_tenant, p_traits);
  return (carrick._identities(p_identities), p_traits)::carrick._request;
end $$;

create function carrick._requests(p_tenant text, p_requests jsonb) returns carrick._request[]
  language plpgsql as $$
begin
  if jsonb_typeof(p_requests) is distinct from 'array' then
    perform carrick._refuse('requests', 'is no list', '[{"identities": […], "traits": {…}}, …]');
  end if;
  return array(
    select carrick._checked(p_tenant, r.request -> 'identities', coalesce(r.request -> 'traits', '{}'))
      from jsonb_array_elements(p_requests) with ordinality as r(request, at) order by r.at);
end $$;

-- Takes the locks that these requests need, in the one order. Alone it is for a transaction that is going to make several calls.
create function carrick._lock_requests(p_tenant text, p_requests carrick._request[]) returns void
  language plpgsql as $$
begin
  perform carrick._lock_contacts(p_tenant, array(
    select (i.type, i.value, i.value_normalised)::carrick._identity
      from unnest(p_requests) r cross join lateral unnest(r.identities) i));
end $$;

create or replace function carrick.resolve_contact(
  p_tenant text, p_identities jsonb, p_traits jsonb default '{}', p_channel text default 'events',
  out contact_id uuid, out created boolean, out merged uuid[], out conflicts uuid[])
  language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  r carrick._request := carrick._checked(p_tenant, p_identities, p_traits);
begin
  contact_id := carrick._settled(p_tenant, r.identities, r.traits);
  if contact_id is not null then
    created := false;
    merged := '{}';
    conflicts := '{}';
    return;
  end if;
  perform carrick._lock_contacts(p_tenant, r.identities);
  select x.contact_id, x.created, x.merged, x.conflicts into contact_id, created, merged, conflicts
    from carrick._resolve(p_channel, p_tenant, r.identities, r.traits) x;
end $$;
comment on function carrick.resolve_contact is 'The one contact that the identities belong to: found, made or merged; told in the outbox.';

-- Several resolves of one tenant in one transaction, `[{"identities": […], "traits": {…}}, …]`. As soon as one of them changes
-- something the locks of all are taken: an earlier one may change what a later one had found settled.
create or replace function carrick.resolve_contacts(p_tenant text, p_requests jsonb, p_channel text default 'events')
  returns table (contact_id uuid, created boolean, merged uuid[], conflicts uuid[])
  language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_requests carrick._request[] := carrick._requests(p_tenant, p_requests);
  v_settled uuid[];
  r carrick._request;
begin
  v_settled := array(select carrick._settled(p_tenant, x.identities, x.traits)
                       from unnest(v_requests) with ordinality as x(identities, traits, at) order by x.at);
  if array_position(v_settled, null) is null then
    return query select x.id, false, '{}'::uuid[], '{}'::uuid[] from unnest(v_settled) with ordinality as x(id, at) order by x.at;
    return;
  end if;
  perform carrick._lock_requests(p_tenant, v_requests);
  foreach r in array v_requests loop
    contact_id := carrick._settled(p_tenant, r.identities, r.traits); -- mostly it is, and this look costs a third of the other
    if contact_id is null then
      return query select x.* from carrick._resolve(p_channel, p_tenant, r.identities, r.traits) x;
    else
      return query select resolve_contacts.contact_id, false, '{}'::uuid[], '{}'::uuid[];
    end if;
  end loop;
end $$;
