-- public.outbox: channel `outbox` as the table of "Outbox Claim Hardening". Reading goes straight to the engine's tables;
-- INSTEAD OF triggers turn writes into the engine's own operations, so leases and attempts hold for those writes too.
-- Above the view: what this view and public.sync_outbox share.

-- Refuses to stand in for a relation that is there already: its rows would be out of sight.
create function carrick._compat_reserve(p_name text) returns void
  language plpgsql as $$
declare
  v_kind text;
begin
  select case k.relkind when 'v' then 'view' when 'm' then 'materialized view' when 'f' then 'foreign table'
                        when 'r' then 'table' when 'p' then 'table' else 'relation' end
    into v_kind from pg_class k where k.oid = to_regclass(format('public.%I', p_name));
  if found then
    perform carrick._fail('CK004', format('public.%s: exists already as a %s', p_name, v_kind),
      format('accepted: rename it first (alter %s public.%s rename to %s_before), migrate again, then move its waiting rows: '
             'docs/how-to/move-from-an-outbox-table.md', v_kind, p_name, p_name));
  end if;
end $$;

select carrick._compat_reserve('outbox');

-- Where each entry is. Bare members, so that a join by seq reaches their keys; the channel is hidden from the planner,
-- which would rather walk a whole channel when its figures say that it is empty.
create view carrick._compat_place as
select w.seq, w.id, w.channel || '' as channel, 'pending'::text as state, w.due, null::text as owner, null::uuid as token,
       null::timestamptz as claimed_at, null::timestamptz as expires_at, null::timestamptz as ended_at,
       null::int as attempt_count, null::text as last_error_code, null::text as last_error_message,
       null::text as dlq_reason
  from carrick.work w
union all
select h.seq, h.id, l.channel, 'claimed', h.due, l.owner, l.token, l.claimed_at, l.expires_at, null, null, null, null, null
  from carrick.lease l cross join lateral unnest(l.seqs, l.ids, l.dues) as h(seq, id, due)
union all
select e.seq, e.id, e.channel || '', e.state, null, null, null, null, null, e.ended_at, e.attempt_count, e.last_error_code,
       e.last_error_message, e.dlq_reason
  from carrick.ended e;

-- Columns whose value an UPDATE changes. Compared as JSON text: a payload is not parsed beyond that.
create function carrick._compat_changed(p_old json, p_new json) returns text[]
  language sql immutable as $$
  select coalesce(array_agg(o.key), '{}')
    from json_each(p_old) o join json_each(p_new) n on n.key = o.key
   where o.value::text is distinct from n.value::text
$$;

create function carrick._compat_allow(p_changed text[], p_allowed text[], p_from text, p_to text) returns void
  language plpgsql as $$
declare
  v_refused text := (select min(x) from unnest(p_changed) x where x <> all (p_allowed));
begin
  if v_refused is not null then
    perform carrick._fail('CK004',
      format(case when p_from = p_to then '%s: cannot change while an entry is %s'
                  else '%s: cannot change when an entry goes from %s to %s' end, v_refused, p_from, p_to),
      'accepted: ' || case when p_allowed = '{}' then 'no change' else array_to_string(p_allowed, ', ') end);
  end if;
end $$;

-- An attempt is counted by the engine; a caller may only say that there was one more.
create function carrick._compat_check_attempts(p_column text, p_old int, p_new int) returns void
  language plpgsql as $$
begin
  if p_new is distinct from p_old and p_new is distinct from coalesce(p_old, 0) + 1 then
    perform carrick._fail('CK004', format('%s: %s after %s', p_column, coalesce(p_new::text, 'null'), coalesce(p_old, 0)),
                          format('accepted: as it is, or %s', coalesce(p_old, 0) + 1));
  end if;
end $$;

create function carrick._compat_check_lease(p_until timestamptz) returns void
  language plpgsql as $$
begin
  if p_until is null or p_until > carrick.clock() + interval '1 day' then
    perform carrick._fail('CK004', format('lease_expires_at: %s', coalesce(p_until::text, 'null')),
                          'accepted: at most one day from now, or a time in the past to let the lease expire');
  end if;
end $$;

-- Where one entry is at this moment, locked there until the transaction ends; state is null when it just moved on.
create function carrick._compat_lock(p_id uuid, out state text, out seq bigint, out batch_id uuid, out token uuid, out owner text,
                                     out claimed_at timestamptz, out expires_at timestamptz)
  language plpgsql
  set enable_seqscan = off as $$
declare
  v_seq bigint;
  v_channel text;
begin
  select r.seq, r.channel into v_seq, v_channel from carrick.record r where r.id = p_id;
  seq := v_seq;
  select 'pending' into state from carrick.work w where w.seq = v_seq for update;
  if not found then
    select 'claimed', l.batch_id, l.token, l.owner, l.claimed_at, l.expires_at
      into state, batch_id, token, owner, claimed_at, expires_at
      from carrick.lease l where l.channel = v_channel and v_seq = any(l.seqs) for update;
    if not found then
      select e.state into state from carrick.ended e where e.seq = v_seq for update;
    end if;
  end if;
end $$;

-- Takes one waiting entry under a lease, together with what the same transaction took for the same owner. False when it is
-- not to be had: somebody else has it, a gate is closed, or it must come back apart from the rest of this batch. Through a gate that is
-- half open one entry goes, as in carrick.claim.
create function carrick._compat_take(
  c carrick.channel, p_id uuid, p_token uuid, p_owner text, p_claimed_at timestamptz, p_until timestamptz) returns boolean
  language plpgsql
  set enable_seqscan = off as $$
declare
  v_now timestamptz := carrick.clock();
  w carrick.work;
  t carrick.trouble;
  l record;
  v_closed boolean;
  v_probe boolean;
begin
  select x.* into w from carrick.record r join carrick.work x on x.seq = r.seq where r.id = p_id for update of x skip locked;
  if not found or exists (
       select from carrick.gate g where g.channel = c.name and g.closed_until > v_now
          and g.scope in ('*', 'tenant:' || w.tenant_id, 'principal:' || w.principal)) then
    return false;
  end if;
  if c.mode <> 'stream' and w.group_key is not null then
    perform carrick._fail('CK004', format('status: entry %s is one of a group in a channel of mode %s', p_id, c.mode),
                          format('accepted: carrick.claim(%L, owner) for those', c.name));
  end if;
  select x.* into t from carrick.trouble x where x.seq = w.seq and w.special;
  if t.frozen_batch is not null then
    return false; -- comes back whole, which only carrick.claim can do
  end if;
  select g.closed, coalesce(g.half_open, false) into v_closed, v_probe from carrick._pass_gate(c.name, v_now) g;
  if v_closed then
    return false; -- another one is trying
  end if;
  if v_probe then
    perform carrick._start_probe(c.name, coalesce(p_until, v_now + c.lease_seconds * interval '1 second'));
  end if;
  for l in -- leases that this very transaction wrote
    select x.batch_id, x.token, x.units, first.tenant_id, x.claimed_at, x.expires_at, s.batch_cap
      from carrick.lease x
      join carrick.record first on first.id = x.ids[1]
      left join carrick.trouble s on s.seq = x.seqs[1]
     where x.channel = c.name and x.owner = p_owner and x.xmin = pg_current_xact_id()::xid
  loop
    if l.batch_cap is distinct from t.batch_cap or l.units >= coalesce(t.batch_cap, 10000) then
      return false;
    end if;
    if l.token = coalesce(p_token, l.token) and l.claimed_at = coalesce(p_claimed_at, l.claimed_at)
       and l.expires_at = coalesce(p_until, l.expires_at) and (not c.one_tenant or l.tenant_id = w.tenant_id) then
      update carrick.lease x
         set units = x.units + 1, troubled = x.troubled or w.troubled, bytes = x.bytes + w.size,
             seqs = x.seqs || w.seq, ids = x.ids || w.id, dues = x.dues || w.due
       where x.batch_id = l.batch_id;
      delete from carrick.work x where x.seq = w.seq;
      return true;
    end if;
  end loop;
  insert into carrick.lease (batch_id, token, channel, owner, claimed_at, expires_at, units, troubled, grouped, bytes,
                             seqs, ids, dues)
  values (carrick.uuid7(), coalesce(p_token, gen_random_uuid()), c.name, p_owner, coalesce(p_claimed_at, v_now),
          coalesce(p_until, v_now + c.lease_seconds * interval '1 second'), 1, w.troubled, c.mode <> 'stream', w.size,
          array[w.seq], array[w.id], array[w.due]);
  delete from carrick.work x where x.seq = w.seq;
  return true;
end $$;

-- Gives a claimed entry other times than the rest of its lease: it moves to a second lease with the same token. Entries of
-- one group stay together, with their hold. `units` stays what was taken at once: that is what an expiry asks about.
create function carrick._compat_age(p_batch uuid, p_seq bigint, p_claimed_at timestamptz, p_until timestamptz) returns void
  language plpgsql
  set enable_seqscan = off as $$
declare
  l carrick.lease;
  r carrick.record;
  v_moved bigint[] := array[p_seq];
  v_to uuid;
begin
  perform carrick._compat_check_lease(p_until);
  select x.* into l from carrick.lease x where x.batch_id = p_batch for update;
  select x.* into r from carrick.record x where x.id = l.ids[array_position(l.seqs, p_seq)];
  if (l.claimed_at, l.expires_at) = (p_claimed_at, p_until) then
    return; -- went along with another entry of its group
  end if;
  if l.grouped and r.group_key is not null then
    v_moved := array(select h.seq from unnest(l.seqs, l.ids) as h(seq, id) join carrick.record x on x.id = h.id
                      where x.tenant_id = r.tenant_id and x.group_key = r.group_key);
  end if;
  select x.batch_id into v_to from carrick.lease x
   where x.token = l.token and x.channel = l.channel and x.owner = l.owner and x.units = l.units
     and x.intent is not distinct from l.intent and (x.claimed_at, x.expires_at) = (p_claimed_at, p_until)
     and x.xmin = pg_current_xact_id()::xid limit 1;
  if v_to is null then
    v_to := carrick.uuid7();
    insert into carrick.lease (batch_id, token, channel, owner, claimed_at, expires_at, units, troubled, grouped, bytes,
                               intent, seqs, ids, dues)
    values (v_to, l.token, l.channel, l.owner, p_claimed_at, p_until, l.units, l.troubled, l.grouped, 0, l.intent,
            '{}', '{}', '{}');
  end if;
  update carrick.lease x
     set (seqs, ids, dues, bytes) = (
       select x.seqs || array_agg(h.seq), x.ids || array_agg(h.id), x.dues || array_agg(h.due),
              x.bytes + sum(y.payload_size_bytes)
         from unnest(l.seqs, l.ids, l.dues) as h(seq, id, due) join carrick.record y on y.id = h.id
        where h.seq = any(v_moved))
   where x.batch_id = v_to;
  update carrick.hold h set batch_id = v_to
   where h.batch_id = p_batch and (h.tenant_id, h.group_key) = (r.tenant_id, r.group_key);
  perform carrick._shrink_lease(p_batch, v_moved);
end $$;

-- Ends or returns one claimed entry under its own lease; the state it then has.
create function carrick._compat_finish(p_token uuid, p_id uuid, p_outcome text, p_code text, p_message text) returns text
  language sql as $$
  select f.state
    from carrick.finish(p_token, jsonb_build_array(jsonb_build_object(
           'id', p_id, 'outcome', p_outcome, 'code', p_code, 'message', p_message))) f
   where f.id = p_id
$$;

-- A waiting entry is delivered without a worker. False when it just moved on.
create function carrick._compat_deliver(p_seq bigint) returns boolean
  language plpgsql
  set enable_seqscan = off as $$
declare
  w carrick.work;
  t carrick.trouble;
begin
  delete from carrick.work x where x.seq = p_seq returning x.* into w;
  if not found then
    return false;
  end if;
  delete from carrick.trouble x where x.seq = p_seq returning x.* into t;
  insert into carrick.ended (seq, id, channel, state, ended_at, attempt_count, crash_count, last_error_code, last_error_message)
  values (w.seq, w.id, w.channel, 'delivered', carrick.clock(), coalesce(t.attempt_count, 0) + 1, coalesce(t.crash_count, 0),
          t.last_error_code, t.last_error_message);
  if exists (select from carrick.channel c where c.name = w.channel and c.max_backlog_bytes is not null) then
    perform carrick._count_backlog(w.channel, -w.size);
  end if;
  return true;
end $$;

create function carrick._compat_due(p_seq bigint, p_due timestamptz) returns void
  language sql as $$
  with moved as (
    update carrick.work w set due = p_due, rank = carrick._rank(p_due, w.priority) where w.seq = p_seq returning w.channel)
  select carrick._wake(m.channel) from moved m
$$;

-- What an entry went through before it came here.
create function carrick._compat_history(
  p_seq bigint, p_column text, p_attempts int, p_last_attempt_at timestamptz, p_code text, p_message text) returns void
  language plpgsql as $$
begin
  if p_attempts not between 0 and 1000 then
    perform carrick._fail('CK004', format('%s: %s is out of range', p_column, p_attempts), 'accepted: 0 to 1000');
  end if;
  if p_attempts > 0 or p_code is not null or p_message is not null then
    insert into carrick.trouble (seq, attempt_count, last_attempt_at, last_error_code, last_error_message)
    values (p_seq, coalesce(p_attempts, 0), p_last_attempt_at, left(p_code, 255), left(p_message, 2000));
    update carrick.work w set troubled = true where w.seq = p_seq;
  end if;
end $$;

-- DELETE on either view is retention by hand: it removes what has ended, and nothing else (G2).
create function carrick._compat_delete() returns trigger
  language plpgsql as $$
declare
  at record;
  c carrick.channel;
  r carrick.record;
begin
  select * into at from carrick._compat_lock(old.id);
  if at.state in ('pending', 'claimed') then
    perform carrick._fail('CK004', format('%s: entry %s is %s and cannot be deleted', tg_table_name, old.id, at.state),
                          'accepted: only what was delivered or is dead; nothing but retention removes an entry');
  end if;
  if at.state is null then
    return null;
  end if;
  delete from carrick.ended e where e.seq = at.seq;
  delete from carrick.record x where x.id = old.id returning x.* into r;
  c := carrick._known_channel(r.channel);
  if c.remember_keys_days > 0 and r.key is not null then
    insert into carrick.remembered_key (channel, tenant_id, key, id, state, content_hash, forget_at)
    values (r.channel, r.tenant_id, r.key, r.id, at.state,
            carrick._content_hash(r.event_type, r.payload::text, r.group_key, r.principal),
            carrick.clock() + c.remember_keys_days * interval '1 day')
    on conflict (channel, tenant_id, key) do nothing;
  end if;
  return old;
end $$;

-- `record` stands beside the places so that FOR UPDATE SKIP LOCKED on the view has rows to lock. Dead entries are left
-- out: that document has no such state, and its claim would take them for waiting ones.
create view public.outbox as
select r.id, r.event_type as topic, carrick._as_jsonb(r.payload) as payload, carrick._as_uuid(r.tenant_id) as tenant_id,
       r.created_at, p.ended_at as delivered_at,
       coalesce(p.attempt_count, (select t.attempt_count from carrick.trouble t where t.seq = p.seq), 0) as attempts,
       p.token as processing_token, p.expires_at as lease_expires_at
  from carrick.record r
  join carrick._compat_place p on p.seq = r.seq and p.id = r.id
 where r.channel = 'outbox' and p.channel = 'outbox' and p.state <> 'dead';
comment on view public.outbox is 'Channel outbox of Carrick, for SQL written against a table of that name.';

create function carrick._compat_outbox_insert() returns trigger
  language plpgsql as $$
declare
  c carrick.channel := carrick._known_channel('outbox'::text);
  p record;
  v_seq bigint;
begin
  if new.topic is null or length(new.topic) not between 1 and 255 then
    perform carrick._fail('CK004', format('topic: %s characters', coalesce(length(new.topic)::text, 'null, not')),
                          'accepted: text of 1 to 255 characters');
  end if;
  if new.payload is null then
    perform carrick._fail('CK004', 'payload: null', 'accepted: a JSON value');
  end if;
  perform carrick._check_time('created_at', new.created_at), carrick._check_time('delivered_at', new.delivered_at);
  select * into p from carrick._put('outbox', new.topic, new.payload::json, null, coalesce(new.tenant_id::text, ''), null, null,
                                    0, null, null, null, null, null, new.created_at, new.id);
  if p.problem is not null then
    perform carrick._raise_problem(p.problem, 'outbox', null);
  end if;
  select r.seq into v_seq from carrick.record r where r.id = p.id;
  if p.state = 'pending' then
    perform carrick._compat_history(v_seq, 'attempts', new.attempts, null, null, null);
    if new.delivered_at is not null then
      perform carrick._compat_deliver(v_seq);
      update carrick.ended e set ended_at = new.delivered_at, attempt_count = coalesce(new.attempts, e.attempt_count)
       where e.seq = v_seq;
    elsif new.processing_token is not null then
      perform carrick._compat_take(c, p.id, new.processing_token, new.processing_token::text, null, new.lease_expires_at);
    end if;
  end if;
  new.id := p.id;
  return carrick._compat_outbox_row(new);
end $$;

-- The row as it now stands; as given when it is no longer in the view because it became dead.
create function carrick._compat_outbox_row(p_row public.outbox) returns public.outbox
  language plpgsql stable
  set enable_seqscan = off as $$
declare
  v_row public.outbox;
begin
  select o.* into v_row from public.outbox o where o.id = p_row.id;
  return case when found then v_row else p_row end;
end $$;

create function carrick._compat_outbox_state(o public.outbox) returns text
  language sql immutable as $$
  select case when o.delivered_at is not null then 'delivered' when o.processing_token is not null then 'claimed'
              else 'pending' end
$$;

create function carrick._compat_outbox_update() returns trigger
  language plpgsql as $$
declare
  c carrick.channel := carrick._known_channel('outbox'::text);
  v_changed text[] := carrick._compat_changed(row_to_json(old), row_to_json(new));
  v_from text := carrick._compat_outbox_state(old);
  v_to text := carrick._compat_outbox_state(new);
  at record;
  v_done boolean := true;
begin
  perform carrick._compat_allow(v_changed, case v_from || ' ' || v_to
      when 'pending pending' then '{created_at}'
      when 'pending claimed' then '{processing_token, lease_expires_at}'
      when 'pending delivered' then '{delivered_at, attempts}'
      when 'claimed claimed' then '{lease_expires_at}'
      when 'claimed pending' then '{processing_token, lease_expires_at, attempts}'
      when 'claimed delivered' then '{delivered_at, processing_token, lease_expires_at, attempts}'
      when 'delivered delivered' then '{delivered_at}'
      else '{}' end::text[], v_from, v_to);
  if v_from <> v_to then
    perform carrick._compat_check_attempts('attempts', old.attempts, new.attempts);
  end if;
  if v_from = 'pending' and v_to = 'claimed' then
    v_done := carrick._compat_take(c, old.id, new.processing_token, new.processing_token::text, null, new.lease_expires_at);
  elsif v_changed <> '{}' then
    select * into at from carrick._compat_lock(old.id);
    if at.state is distinct from v_from or at.token is distinct from old.processing_token then
      return null; -- it moved on since this statement read it
    end if;
    case v_from || ' ' || v_to
      when 'pending pending' then
        update carrick.record r set created_at = new.created_at where r.id = old.id;
        perform carrick._compat_due(at.seq, least(new.created_at, carrick.clock()));
      when 'pending delivered' then
        v_done := carrick._compat_deliver(at.seq);
      when 'claimed claimed' then
        perform carrick._compat_age(at.batch_id, at.seq, at.claimed_at, new.lease_expires_at);
      when 'claimed pending' then
        perform carrick._compat_finish(at.token, old.id, case when 'attempts' = any(v_changed) then 'retry' else 'released' end,
                                       null, null);
      when 'claimed delivered' then
        perform carrick._compat_finish(at.token, old.id, 'delivered', null, null);
      else null; -- delivered: only its time changes
    end case;
    if v_to = 'delivered' then
      update carrick.ended e set ended_at = new.delivered_at where e.seq = at.seq;
    end if;
  end if;
  return case when v_done then carrick._compat_outbox_row(new) end;
end $$;

create trigger outbox_insert instead of insert on public.outbox for each row execute function carrick._compat_outbox_insert();
create trigger outbox_update instead of update on public.outbox for each row execute function carrick._compat_outbox_update();
create trigger outbox_delete instead of delete on public.outbox for each row execute function carrick._compat_delete();
