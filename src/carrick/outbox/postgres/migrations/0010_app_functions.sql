-- The two functions of "Outbox Claim Hardening" under their own names, on channel `outbox`. They are thin: leases, fencing
-- and attempts are those of carrick.claim and carrick.finish.

create schema if not exists app;

do $$
declare
  v_there text;
begin
  select string_agg(p.oid::regprocedure::text, ', ' order by p.oid::regprocedure::text) into v_there
    from pg_proc p
   where p.pronamespace = 'app'::regnamespace and p.proname in ('outbox_claim', 'outbox_mark_delivered');
  if v_there is not null then
    perform carrick._fail('CK004', format('schema app: %s exists already', v_there),
      'accepted: rename it (alter function ... rename to outbox_claim_before) or drop it, then migrate again');
  end if;
end $$;

-- Not fair between tenants on purpose: that document takes from all of them, oldest created_at first.
select carrick.declare_channel('outbox', '{"mode": "stream", "fair": false}');

-- Null where the text is valid JSON that jsonb cannot hold: \u0000, a lone surrogate, a number out of range.
create function carrick._as_jsonb(p_json json) returns jsonb
  language plpgsql immutable as $$
begin
  return p_json::jsonb;
exception when data_exception or program_limit_exceeded then
  return null;
end $$;

-- A tenant as that document knows it. The empty tenant is null there, and so is one that is no UUID.
create function carrick._as_uuid(p_tenant_id text) returns uuid
  language sql immutable parallel safe
  as $$ select case when p_tenant_id ~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$' then p_tenant_id::uuid end $$;

create type app.outbox_entry as (
  id uuid, topic text, payload jsonb, tenant_id uuid, created_at timestamptz, delivered_at timestamptz, attempts int,
  processing_token uuid, lease_expires_at timestamptz);
comment on type app.outbox_entry is 'A row of public.outbox, the view that `carrick migrate --compat` makes.';

-- Claims up to p_limit entries for the lease time of the channel; of one tenant when p_tenant is given. Expired leases are
-- taken too. An entry that this signature cannot carry becomes dead with that reason instead of blocking its neighbours.
create function app.outbox_claim(p_limit int, p_token uuid, p_tenant uuid) returns setof app.outbox_entry
  language plpgsql as $$
declare
  v_taken app.outbox_entry[];
  v_entry app.outbox_entry;
  v_unfit jsonb;
begin
  if p_limit is null or p_limit not between 1 and 10000 then
    perform carrick._fail('CK004', format('p_limit: %s is out of range', coalesce(p_limit::text, 'null')),
                          'accepted: 1 to 10000');
  end if;
  if p_token is null then
    perform carrick._fail('CK004', 'p_token: must not be null', 'accepted: a UUID of the worker, for instance gen_random_uuid()');
  end if;
  v_taken := array(
    select row(e.id, e.event_type, carrick._as_jsonb(e.payload), carrick._as_uuid(e.tenant_id), e.created_at, null,
               e.attempt_count, e.lease_token, e.lease_expires_at)::app.outbox_entry
      from carrick.claim('outbox', p_token::text, p_limit, 1073741824, null, p_tenant::text, p_token) e
     order by e.created_at, e.seq);
  select jsonb_agg(jsonb_build_object(
           'id', t.id, 'outcome', 'rejected', 'code', 'not_jsonb',
           'message', 'jsonb cannot hold this payload: claim it with carrick.claim, which returns json'))
    into v_unfit from unnest(v_taken) t where t.payload is null;
  if v_unfit is not null then
    perform carrick.finish(p_token, v_unfit);
  end if;
  foreach v_entry in array v_taken loop
    if v_entry.payload is not null then
      return next v_entry;
    end if;
  end loop;
end $$;

-- Marks the given entries delivered, as far as this token still holds them; how many this call delivered.
create function app.outbox_mark_delivered(p_token uuid, p_ids uuid[]) returns int
  language plpgsql as $$
declare
  v_outcomes jsonb;
begin
  if p_token is null then
    perform carrick._fail('CK004', 'p_token: must not be null', 'accepted: the token given to app.outbox_claim');
  end if;
  select jsonb_agg(jsonb_build_object('id', held.id, 'outcome', 'delivered')) into v_outcomes
    from carrick.lease l cross join unnest(l.ids) as held(id)
   where l.token = p_token and l.channel = 'outbox' and held.id in (select i from unnest(p_ids) i);
  return (select count(*)::int from carrick.finish(p_token, coalesce(v_outcomes, '[]')));
end $$;
