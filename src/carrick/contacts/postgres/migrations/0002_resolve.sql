-- The one contact that identities belong to. docs/reference/contacts.md has the rules; the functions to call, resolve_contact and
-- resolve_contacts, stand in 0004_calls.sql.
--
-- Locks, always in this order, so that no two resolves wait for each other in a circle: first the identities (advisory locks,
-- 256 per tenant, by ascending key), then the contacts they belong to (rows, the newest first). A merge goes from the newer
-- to the older, so a tombstone that is met while waiting leads to a contact that comes later in the order anyway.
-- A resolve that changes nothing takes none of them.

create function carrick._refuse(p_field text, p_problem text, p_accepted text) returns void
  language sql as $$ select carrick._fail('CK004', p_field || ': ' || p_problem, 'accepted: ' || p_accepted) $$;

-- What is wrong with one identity, as "problem; accepted", or null.
create function carrick._identity_problem(p_identity jsonb, out problem text, out accepted text)
  language plpgsql immutable as $$
declare
  v_type text := p_identity ->> 'type';
  v_value text := p_identity ->> 'value';
begin
  if jsonb_typeof(p_identity) <> 'object' or jsonb_typeof(p_identity -> 'type') is distinct from 'string'
     or jsonb_typeof(p_identity -> 'value') is distinct from 'string' then
    problem := 'is no object with the texts type and value';
    accepted := '{"type": "email", "value": "ann@example.org"}';
  elsif v_type not in ('external_id', 'email', 'phone', 'anonymous_id') then
    problem := format('unknown type %L', left(v_type, 40));
    accepted := 'external_id, email, phone, anonymous_id';
  elsif v_type in ('external_id', 'anonymous_id') and char_length(v_value) not between 1 and 255 then
    problem := format('%s has %s characters', v_type, char_length(v_value));
    accepted := '1 to 255 characters';
  elsif v_type = 'email' and (char_length(carrick._normalised('email', v_value)) > 320
        or carrick._normalised('email', v_value) !~ '^[^\u0001-\u0020\u007f]+@[^\u0001-\u0020\u007f@]+$') then
    problem := 'is no e-mail address';
    accepted := 'name@domain without spaces, at most 320 characters';
  elsif v_type = 'phone' and v_value !~ '^\+[1-9][0-9]{6,14}$' then
    problem := 'phone is not in E.164';
    accepted := '+ and 7 to 15 digits, as in +442079460958';
  end if;
end $$;

-- The identities as given, checked: the strongest first, each once.
create function carrick._identities(p_identities jsonb) returns carrick._identity[]
  language plpgsql as $$
declare
  v_given carrick._identity[] := '{}';
  v_wrong record;
begin
  if jsonb_typeof(p_identities) is distinct from 'array' or jsonb_array_length(p_identities) not between 1 and 20 then
    perform carrick._refuse('identities', 'is no list of 1 to 20 identities', '1 to 20 objects with type and value');
  end if;
  select 'identities[' || e.at - 1 || ']' as field, w.* into v_wrong
    from jsonb_array_elements(p_identities) with ordinality as e(identity, at), carrick._identity_problem(e.identity) w
   where w.problem is not null order by e.at limit 1;
  if found then
    perform carrick._refuse(v_wrong.field, v_wrong.problem, v_wrong.accepted);
  end if;
  select array_agg((d.type, d.value, d.normalised)::carrick._identity
                   order by array_position('{external_id,email,phone,anonymous_id}'::text[], d.type), d.at) into v_given
    from (select distinct on (n.type, n.normalised collate "C") n.*
            from (select e.at, e.identity ->> 'type' as type,
                         case e.identity ->> 'type' when 'email' then btrim(e.identity ->> 'value', E' \t\n\r\f\v')
                                                    else e.identity ->> 'value' end as value,
                         carrick._normalised(e.identity ->> 'type', e.identity ->> 'value') as normalised
                    from jsonb_array_elements(p_identities) with ordinality as e(identity, at)) n
           order by n.type, n.normalised collate "C", n.at) d;
  if v_given[2].type = 'external_id' then
    perform carrick._refuse('identities', 'two different external ids', 'one external_id for one contact');
  end if;
  return v_given;
end $$;

-- The given traits that differ from those known; null where a trait goes.
create function carrick._changed_traits(p_known jsonb, p_given jsonb) returns jsonb
  language sql immutable as $$
  select coalesce(jsonb_object_agg(g.key, g.value), '{}') from jsonb_each(p_given) g
   where g.value <> coalesce(p_known -> g.key, 'null')
$$;

create function carrick._without_nulls(p_traits jsonb) returns jsonb
  language sql immutable as $$
  select coalesce(jsonb_object_agg(t.key, t.value), '{}') from jsonb_each(p_traits) t where t.value <> 'null'
$$;

-- The contact that an identity belongs to. A function of its own, so that it is looked up by its whole key: in a join the planner
-- would rather read all identities of the tenant.
create function carrick._owner(p_tenant text, p_type text, p_normalised text) returns uuid
  language plpgsql stable as $$
begin
  return (select i.contact_id from carrick.contact_identities i
           where i.tenant_id = p_tenant and i.type = p_type and i.value_normalised = p_normalised);
end $$;

-- The contact when nothing would change: all identities are known, all are its own, all traits are as given. Takes no lock.
create function carrick._settled(p_tenant text, p_given carrick._identity[], p_traits jsonb) returns uuid
  language plpgsql as $$
declare
  v_ids uuid[];
begin
  select array_agg(distinct carrick._owner(p_tenant, g.type, g.value_normalised)) into v_ids from unnest(p_given) g;
  return (select c.id from carrick.contacts c
           where cardinality(v_ids) = 1 and c.id = v_ids[1]
             and carrick._changed_traits(c.traits, p_traits) = '{}');
end $$;

-- Takes the locks that a resolve of these identities needs, in the order told above; how many contacts are locked.
create function carrick._lock_contacts(p_tenant text, p_given carrick._identity[]) returns int
  language plpgsql as $$
declare
  v_key bigint;
  v_waiting bigint[];
  v_seq bigint;
  v_into uuid;
  v_locked int := 0;
begin
  for v_key in
    select distinct hashtextextended('carrick contacts ' || p_tenant, hashtext(g.type || ':' || g.value_normalised) & 255)
      from unnest(p_given) g order by 1
  loop
    perform pg_advisory_xact_lock(v_key);
  end loop;
  v_waiting := array(
    select distinct c.seq from unnest(p_given) g
     cross join lateral (select x.seq from carrick.contacts x
                          where x.id = carrick._owner(p_tenant, g.type, g.value_normalised) offset 0) c);
  while cardinality(v_waiting) > 0 loop
    select max(w) into v_seq from unnest(v_waiting) w;
    v_waiting := array_remove(v_waiting, v_seq);
    select c.merged_into into v_into from carrick.contacts c where c.seq = v_seq for no key update;
    v_locked := v_locked + 1;
    if v_into is not null then -- it was merged while we waited
      select array_append(array_remove(v_waiting, c.seq), c.seq) into v_waiting from carrick.contacts c where c.id = v_into;
    end if;
  end loop;
  return v_locked;
end $$;

-- One event, in the same transaction. The channel is declared when nobody has: `ordered`, with the contact as the group.
create function carrick._tell_contact(p_channel text, p_tenant text, p_contact uuid, p_event_type text, p_body jsonb) returns void
  language plpgsql as $$
begin
  if not exists (select from carrick.channel c where c.name = p_channel) then
    perform carrick.declare_channel(p_channel, '{"mode": "ordered"}');
  end if;
  perform carrick.put(p_channel, p_event_type,
    (jsonb_strip_nulls(jsonb_build_object('tenant_id', p_tenant, 'contact_id', p_contact)) || p_body)::json,
    tenant_id => p_tenant, group_key => p_contact::text);
end $$;

create function carrick._as_told(p_identities carrick._identity[]) returns jsonb
  language sql immutable as $$
  select coalesce(jsonb_agg(jsonb_build_object('type', i.type, 'value', i.value_normalised) order by i.at), '[]')
    from unnest(p_identities) with ordinality as i(type, value, value_normalised, at)
$$;

-- The identities of the losers move to the survivor, whose traits win. Answers with the traits of all of them together.
create function carrick._merge_contacts(p_channel text, p_tenant text, p_survivor uuid, p_losers uuid[]) returns jsonb
  language plpgsql as $$
declare
  v_traits jsonb;
  v_loser record;
begin
  select c.traits into v_traits from carrick.contacts c where c.id = p_survivor;
  for v_loser in select c.id, c.traits from carrick.contacts c where c.id = any(p_losers) order by c.seq loop
    v_traits := v_loser.traits || v_traits;
    update carrick.contact_identities i set contact_id = p_survivor
     where i.contact_id = v_loser.id;
    update carrick.contacts c set merged_into = p_survivor, merged_at = carrick.clock() where c.id = v_loser.id;
    perform carrick._tell_contact(p_channel, p_tenant, p_survivor, 'contact.merged.v1',
                                  jsonb_build_object('merged_contact_id', v_loser.id));
  end loop;
  return v_traits;
end $$;

-- Gives the contact the identities that nobody has, and its traits; tells what really changed.
create function carrick._add_to_contact(
  p_channel text, p_tenant text, p_contact uuid, p_created boolean, p_new carrick._identity[], p_known jsonb, p_traits jsonb)
  returns void language plpgsql as $$
declare
  v_changed jsonb := carrick._changed_traits(p_known, p_traits);
  v_all jsonb := carrick._without_nulls(p_known || p_traits);
  v_added int;
begin
  if v_changed <> '{}' and octet_length(v_all::text) > 262144 then
    perform carrick._refuse('traits', 'would be larger than 256 kB together with those known', 'less, or null to remove some');
  end if;
  insert into carrick.contact_identities (tenant_id, contact_id, type, value)
  select p_tenant, p_contact, n.type, n.value from unnest(p_new) n
  on conflict do nothing;
  get diagnostics v_added = row_count;
  if v_added <> cardinality(p_new) then
    raise exception using errcode = '40001', message = 'an identity was added by other means at the same moment; try again';
  end if;
  update carrick.contacts c
     set traits = v_all,
         updated_at = case when v_added > 0 or v_changed <> '{}' then carrick.clock() else c.updated_at end
   where c.id = p_contact and (v_added > 0 or c.traits <> v_all);
  if p_created or v_added > 0 or v_changed <> '{}' then
    perform carrick._tell_contact(
      p_channel, p_tenant, p_contact, case when p_created then 'contact.created.v1' else 'contact.updated.v1' end,
      jsonb_build_object('identities', carrick._as_told(p_new), 'traits', case when p_created then v_all else v_changed end));
  end if;
end $$;

-- Tells once for each pair of external ids that two contacts were named together and stay apart.
create function carrick._tell_conflict(
  p_channel text, p_tenant text, p_contact uuid, p_external text, p_other uuid, p_other_external text, p_tied carrick._identity[])
  returns void language plpgsql as $$
begin
  insert into carrick.contact_conflicts (tenant_id, external_id, other)
  values (p_tenant, least(p_external collate "C", p_other_external), greatest(p_external collate "C", p_other_external))
  on conflict do nothing;
  if found then
    perform carrick._tell_contact(p_channel, p_tenant, p_contact, 'contact.conflict.v1', jsonb_build_object(
      'external_id', p_external, 'other_contact_id', p_other, 'other_external_id', p_other_external,
      'identities', carrick._as_told(p_tied)));
  end if;
end $$;

-- The contacts that the identities belong to, with what ties each of them to this resolve.
create function carrick._found(p_tenant text, p_given carrick._identity[])
  returns table (contact_id uuid, seq bigint, external_id text, strength bigint, tied carrick._identity[])
  language plpgsql as $$
begin
  return query
    select c.id, c.seq,
           (select x.value_normalised from carrick.contact_identities x where x.contact_id = c.id and x.type = 'external_id'),
           min(g.at), array_agg((g.type, g.value, g.value_normalised)::carrick._identity order by g.at)
      from unnest(p_given) with ordinality as g(type, value, value_normalised, at)
     cross join lateral (select x.id, x.seq from carrick.contacts x
                          where x.id = carrick._owner(p_tenant, g.type, g.value_normalised) offset 0) c
     group by c.id, c.seq;
end $$;

-- The external id of a resolve is the one given, else that of the first contact found (the strongest identity first) that
-- has one. Contacts with another external id stay apart: a conflict. All the others become one, the oldest.
create function carrick._resolve(
  p_channel text, p_tenant text, p_given carrick._identity[], p_traits jsonb,
  out contact_id uuid, out created boolean, out merged uuid[], out conflicts uuid[])
  language plpgsql as $$
declare
  v_external text := case when p_given[1].type = 'external_id' then p_given[1].value_normalised end;
  v_joined uuid[];
  v_new carrick._identity[];
  v_known jsonb := '{}';
  f record;
begin
  if v_external is null then
    select x.external_id into v_external from carrick._found(p_tenant, p_given) x
     where x.external_id is not null order by x.strength limit 1;
  end if;
  v_joined := array(select x.contact_id from carrick._found(p_tenant, p_given) x
                     where x.external_id is null or x.external_id = v_external order by x.seq);
  v_new := array(
    select (g.type, g.value, g.value_normalised)::carrick._identity
      from unnest(p_given) with ordinality as g(type, value, value_normalised, at)
     where carrick._owner(p_tenant, g.type, g.value_normalised) is null
     order by g.at);
  merged := v_joined[2:];
  conflicts := '{}';
  created := cardinality(v_joined) = 0;
  if created then
    insert into carrick.contacts as c (tenant_id) values (p_tenant) returning c.id into contact_id;
  else
    contact_id := v_joined[1];
    v_known := carrick._merge_contacts(p_channel, p_tenant, contact_id, merged);
  end if;
  perform carrick._add_to_contact(p_channel, p_tenant, contact_id, created, v_new, v_known, p_traits);
  for f in select * from carrick._found(p_tenant, p_given) x where x.external_id <> v_external order by x.strength loop
    conflicts := conflicts || f.contact_id;
    perform carrick._tell_conflict(p_channel, p_tenant, contact_id, v_external, f.contact_id, f.external_id, f.tied);
  end loop;
end $$;

-- The contact that a contact has become: itself, or the one it was merged into in the end. Null when there is none.
create function carrick.living_contact(p_tenant text, p_contact uuid) returns uuid
  language sql stable as $$
  with recursive chain as (
    select c.id, c.merged_into from carrick.contacts c where c.tenant_id = p_tenant and c.id = p_contact
    union all
    select c.id, c.merged_into from chain join carrick.contacts c on c.id = chain.merged_into
  )
  select id from chain where merged_into is null
$$;
