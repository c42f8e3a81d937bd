-- put: one entry in the caller's transaction. `_put` reports what is wrong as a value, so that a client can raise its
-- own error and the caller's transaction stays usable; `put` raises for callers in plain SQL.

create function carrick._known_channels() returns text
  language sql stable
  as $$ select coalesce(string_agg(name, ', ' order by name), 'none is declared yet') from carrick.channel $$;

create function carrick._fail(p_code text, p_message text, p_hint text default null) returns void
  language plpgsql as $$
begin
  raise exception using errcode = p_code, message = p_message, hint = coalesce(p_hint, '');
end $$;

create function carrick._known_channel(p_channel text) returns carrick.channel
  language plpgsql stable as $$
declare
  c carrick.channel;
begin
  select * into c from carrick.channel where name = p_channel;
  if not found then
    perform carrick._fail('CK001', format('unknown channel %L', p_channel),
                          'declared channels: ' || carrick._known_channels());
  end if;
  return c;
end $$;

-- What a channel may be given: its columns but for those that it keeps itself.
create function carrick._channel_options() returns setof text
  language sql stable as $$
  select a.attname::text from pg_attribute a
   where a.attrelid = 'carrick.channel'::regclass and a.attnum > 0 and not a.attisdropped
     and a.attname not in ('name', 'said', 'declared_at', 'last_error_at')
   order by a.attnum
$$;

-- Channels have options that SQL users give as JSON: each must be a column, and each value must pass its CHECK.
-- `said`: which of the options are the declaration's own; the others may be set by OUTBOX_… of a process. Null: all that are given, beside those
-- that were said before. `{*}`: all there are.
create function carrick.declare_channel(name text, options jsonb default '{}', said text[] default null) returns void
  language plpgsql as $$
declare
  v_name alias for name;
  v_options alias for options;
  v_said alias for said;
  v_unknown text;
  v_column text;
  v_constraint text;
begin
  if jsonb_typeof(v_options) <> 'object' then
    perform carrick._fail('CK004', format('options: %s', left(v_options::text, 80)), 'accepted: a JSON object');
  end if;
  select string_agg(coalesce(o.key, 'null'), ', ') into v_unknown
    from (select jsonb_object_keys(v_options) union select unnest(nullif(v_said, '{*}'))) as o(key)
   where o.key is null or o.key not in (select carrick._channel_options());
  if v_unknown is not null then
    perform carrick._fail('CK004', format('unknown channel option: %s', v_unknown),
                          'accepted: ' || (select string_agg(o, ', ') from carrick._channel_options() as o));
  end if;
  perform carrick._declare(v_name, v_options, v_said);
exception when data_exception or not_null_violation or check_violation then
  get stacked diagnostics v_column = column_name, v_constraint = constraint_name;
  perform carrick._refuse_channel(v_name, v_options, v_column, v_constraint);
end $$;

create function carrick._declare(p_name text, p_options jsonb, p_said text[]) returns void
  language plpgsql as $$
declare
  v_mode text;
  v_bound bigint;
  v_new carrick.channel;
begin
  insert into carrick.channel (name) values (p_name) on conflict do nothing;
  select c.* into v_new from carrick.channel c where c.name = p_name for update;
  v_mode := v_new.mode;
  v_bound := v_new.max_backlog_bytes;
  v_new := jsonb_populate_record(v_new, p_options);
  v_new.said := case when p_said = '{*}' then null
                     when p_said is not null then p_said
                     when v_new.said is not null
                     then v_new.said || array(select jsonb_object_keys(p_options) except select unnest(v_new.said) order by 1) end;
  if v_new.mode is distinct from v_mode and (exists (select from carrick.work w where w.channel = p_name)
                                             or exists (select from carrick.lease l where l.channel = p_name)) then
    perform carrick._fail('CK005', format('channel %L is declared as %L and still has entries; it cannot become %L now',
                                          p_name, v_mode, v_new.mode), 'wait until it is empty, or declare another channel');
  end if;
  update carrick.channel c
     set (mode, one_tenant, fair, batch_rows, batch_bytes, lease_seconds, max_attempts, backoff_base_seconds,
          backoff_cap_seconds, max_payload_bytes, max_backlog_bytes, on_full, retention_days, dead_retention_days,
          remember_keys_days, said)
       = (v_new.mode, v_new.one_tenant, v_new.fair, v_new.batch_rows, v_new.batch_bytes, v_new.lease_seconds,
          v_new.max_attempts, v_new.backoff_base_seconds, v_new.backoff_cap_seconds, v_new.max_payload_bytes,
          v_new.max_backlog_bytes, v_new.on_full, v_new.retention_days, v_new.dead_retention_days,
          v_new.remember_keys_days, v_new.said)
   where c.name = p_name and c is distinct from v_new;
  if v_new.max_backlog_bytes is not null and v_bound is null then -- what is there already counts from now on
    delete from carrick.backlog b where b.channel = p_name;
    insert into carrick.backlog (channel, backend, bytes)
    values (p_name, 0, coalesce((select sum(w.size) from carrick.work w where w.channel = p_name), 0)
                     + coalesce((select sum(l.bytes) from carrick.lease l where l.channel = p_name), 0));
  end if;
  insert into carrick.turn (channel, fresh) values (p_name, false), (p_name, true) on conflict do nothing;
end $$;

-- Which value it was that `carrick.channel` does not take, and what it takes: its type, or the CHECK that stands there.
create function carrick._refuse_channel(p_name text, p_options jsonb, p_column text, p_constraint text) returns void
  language plpgsql as $$
declare
  o record;
  v_one carrick.channel;
  v_column text := nullif(p_column, '');
  v_rule text;
begin
  for o in select x.key, left(x.value::text, 80) as shown, format_type(a.atttypid, a.atttypmod) as type, x.value
             from jsonb_each(p_options) x join pg_attribute a on a.attrelid = 'carrick.channel'::regclass and a.attname = x.key loop
    begin
      v_one := jsonb_populate_record(null::carrick.channel, jsonb_build_object(o.key, o.value));
    exception when data_exception then
      perform carrick._fail('CK004', format('%s: %s is not of type %s', o.key, o.shown, o.type), format('accepted: a value of type %s', o.type));
    end;
  end loop;
  v_column := coalesce(v_column, (select a.attname from pg_constraint c join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
                                   where c.conrelid = 'carrick.channel'::regclass and c.conname = p_constraint));
  select regexp_replace(regexp_replace(pg_get_constraintdef(c.oid), '^CHECK |[()]|::(double precision|text|bigint)(\[\])?', '', 'g'),
                        '= ANY ARRAY\[(.*)\]', 'is one of \1') into v_rule
    from pg_constraint c join pg_attribute a on a.attrelid = c.conrelid and c.conkey[1] = a.attnum
   where c.conrelid = 'carrick.channel'::regclass and c.contype = 'c' and a.attname = v_column
   order by c.conname <> p_constraint limit 1;
  perform carrick._fail('CK004',
    format('%s: %s is out of range', v_column, coalesce(left(case v_column when 'name' then quote_literal(p_name) else p_options ->> v_column end, 80), 'null')),
    'accepted: ' || coalesce(v_rule, 'a value that is not null'));
end $$;

create function carrick._rank(p_due timestamptz, p_priority int) returns timestamptz
  language sql stable
  as $$ select p_due - p_priority * interval '10 minutes' $$;

create function carrick._state_of(p_seq bigint) returns text
  language sql stable as $$
  select case when carrick._places(array[p_seq]) <> '{null}' then 'pending'
              else coalesce((select e.state from carrick._ended(p_seq) e), 'claimed') end
$$;

-- JSON is the same content when it is the same text, or the same value where jsonb can hold it (not \u0000, not numbers without end).
create function carrick._same_json(a text, b text) returns boolean
  language plpgsql immutable as $$
begin
  return a = b or a::jsonb = b::jsonb;
exception when data_exception then -- beyond what jsonb can hold
  return false;
end $$;

create function carrick._content_hash(p_event_type text, p_payload text, p_group_key text, p_principal text) returns bytea
  language plpgsql immutable as $$
declare
  v_payload text := p_payload;
begin
  begin
    v_payload := (p_payload::jsonb)::text;
  exception when data_exception then
    null; -- beyond what jsonb can hold: its text is its content
  end;
  return sha256(convert_to(json_build_array(p_event_type, p_group_key, p_principal, v_payload)::text, 'UTF8'));
end $$;

create function carrick._count_backlog(p_channel text, p_bytes bigint) returns void
  language sql as $$
  insert into carrick.backlog as b (channel, backend, bytes) values (p_channel, pg_backend_pid(), p_bytes)
  on conflict (channel, backend) do update set bytes = b.bytes + excluded.bytes
$$;

-- Makes room for `p_size` bytes in a bounded channel: `ok`, `full`, or `evicted` when the new entry itself must go.
-- A waiting entry makes way unless its priority is higher than that of the new one.
create function carrick._make_room(c carrick.channel, p_size bigint, p_priority int) returns text
  language plpgsql as $$
declare
  v_over bigint;
begin
  select coalesce(sum(b.bytes), 0) + p_size - c.max_backlog_bytes into v_over from carrick.backlog b where b.channel = c.name;
  if v_over <= 0 then
    perform carrick._count_backlog(c.name, p_size);
    return 'ok';
  end if;
  if c.on_full = 'reject' or p_size > c.max_backlog_bytes then
    return 'full';
  end if;
  if not carrick._evict(c.name, v_over, p_priority) then
    return 'evicted';
  end if;
  perform carrick._count_backlog(c.name, p_size);
  return 'ok';
end $$;

-- Ends waiting entries, last in rank first, until so many bytes are free; none of them when there are not enough.
create function carrick._evict(p_channel text, p_bytes bigint, p_priority int) returns boolean
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_victims bigint[] := '{}';
  v record;
begin
  for v in
    select w.seq, w.size, w.priority
      from unnest(carrick._lanes(p_channel, null, 2147483647, null)) as lane(tenant)
     cross join lateral (
       select x.* from carrick.work x where x.channel = p_channel and x.tenant_id = lane.tenant
        order by x.rank desc, x.seq desc limit 1000) w
     order by w.rank desc, w.seq desc
  loop
    exit when p_bytes <= 0 or v.priority > p_priority;
    perform from carrick.work x where x.ctid = any(carrick._places(array[v.seq])) for update skip locked;
    if found then -- otherwise a claimer is at it, and it stays
      v_victims := v_victims || v.seq;
      p_bytes := p_bytes - v.size;
    end if;
  end loop;
  if p_bytes > 0 then
    return false;
  end if;
  perform carrick._end_waiting(x, 'evicted') from unnest(v_victims) x;
  return true;
end $$;

-- A waiting entry becomes dead without a delivery.
create function carrick._end_waiting(p_seq bigint, p_reason text) returns void
  language plpgsql as $$
declare
  w carrick.work;
  t carrick.trouble;
begin
  delete from carrick.work x where x.ctid = any(carrick._places(array[p_seq])) returning x.* into w;
  if not found then
    return;
  end if;
  delete from carrick.trouble x where x.seq = p_seq returning x.* into t;
  insert into carrick.ended (seq, id, channel, state, ended_at, attempt_count, crash_count,
                             last_error_code, last_error_message, dlq_reason)
  values (w.seq, w.id, w.channel, 'dead', carrick.clock(), coalesce(t.attempt_count, 0), coalesce(t.crash_count, 0),
          t.last_error_code, t.last_error_message, p_reason);
  if exists (select from carrick.channel c where c.name = w.channel and c.max_backlog_bytes is not null) then
    perform carrick._count_backlog(w.channel, -w.size);
  end if;
end $$;

-- Notifies the relays of a channel if one of them rests: NOTIFY takes a lock at commit, so it is for sleepers only. First it locks `work` as
-- a write does: a relay that rests looks for such locks after it is seen to rest, so one of the two sees the other. A transaction that
-- keeps its first snapshot cannot see who has gone to rest since, so it always notifies.
create function carrick._wake(p_channel text) returns void
  language plpgsql as $$
begin
  lock table carrick.work in row exclusive mode;
  if current_setting('transaction_isolation') in ('repeatable read', 'serializable')
     or exists (select from carrick.sleeper s where s.channel = p_channel and s.until > carrick.clock()) then
    perform pg_notify('carrick_put', p_channel);
  end if;
end $$;

create function carrick._put(
  p_channel text, p_event_type text, p_payload json, p_key text, p_tenant_id text, p_group_key text, p_principal text,
  p_priority int, p_headers jsonb, p_occurred_at timestamptz, p_delay_seconds double precision,
  p_max_wait_seconds double precision, p_traceparent text, p_created_at timestamptz, p_id uuid,
  out id uuid, out created boolean, out state text, out problem text)
  language plpgsql as $$
declare
  c carrick.channel; -- read only where more than these two of its columns is needed
  v_largest int;
  v_bounded boolean;
  v_now timestamptz := carrick.clock();
  v_size int := octet_length(p_payload::text);
  v_seq bigint;
  v_due timestamptz;
  v_room text := 'ok';
begin
  select ch.max_payload_bytes, ch.max_backlog_bytes is not null into v_largest, v_bounded
    from carrick.channel ch where ch.name = p_channel;
  if not found then
    problem := 'unknown_channel';
    return;
  end if;
  if v_size > v_largest then
    problem := 'payload_too_large';
    return;
  end if;
  if p_event_type = '' or p_priority not between -1000 and 1000 or p_delay_seconds not between 0 and 31622400
     or p_max_wait_seconds not between 0 and 31622400 then
    perform carrick._refuse_range(p_event_type, p_priority, p_delay_seconds, p_max_wait_seconds);
  end if;
  if p_key is not null or v_bounded then
    select ch.* into c from carrick.channel ch where ch.name = p_channel;
  end if;
  if p_key is not null then
    select k.id, k.created, k.state, k.problem into id, created, state, problem
      from carrick._known_key(c, p_tenant_id, p_key, p_event_type, p_payload::text, p_group_key, p_principal) k;
    if id is not null or problem is not null then
      return;
    end if;
    if p_id is not null and exists (select from carrick.record r where r.id = p_id) then
      problem := 'id_reused';
      return;
    end if;
  end if;
  if v_bounded then
    v_room := carrick._make_room(c, v_size, p_priority);
    if v_room = 'full' then
      problem := 'backlog_full';
      return;
    end if;
  end if;
  if p_key is null then
    insert into carrick.record as r (id, channel, tenant_id, principal, group_key, event_type, payload,
                                     payload_size_bytes, headers, priority, traceparent, occurred_at, created_at,
                                     delay_seconds, max_wait_seconds)
    values (coalesce(p_id, carrick.uuid7()), p_channel, p_tenant_id, p_principal, p_group_key, p_event_type, p_payload,
            v_size, p_headers, p_priority, p_traceparent, p_occurred_at, coalesce(p_created_at, v_now), p_delay_seconds,
            p_max_wait_seconds)
    returning r.id, r.seq into id, v_seq;
  else
    insert into carrick.record as r (id, channel, tenant_id, principal, group_key, event_type, key, payload,
                                     payload_size_bytes, headers, priority, traceparent, occurred_at, created_at, delay_seconds, max_wait_seconds)
    values (coalesce(p_id, carrick.uuid7()), p_channel, p_tenant_id, p_principal, p_group_key, p_event_type, p_key,
            p_payload, v_size, p_headers, p_priority, p_traceparent, p_occurred_at, coalesce(p_created_at, v_now),
            p_delay_seconds, p_max_wait_seconds)
    on conflict (channel, tenant_id, key) where key is not null do nothing
    returning r.id, r.seq into id, v_seq;
    if id is null then -- another transaction put this key while we looked
      if v_bounded and v_room = 'ok' then
        perform carrick._count_backlog(p_channel, -v_size);
      end if;
      select k.id, k.created, k.state, k.problem into id, created, state, problem
        from carrick._known_key(c, p_tenant_id, p_key, p_event_type, p_payload::text, p_group_key, p_principal) k;
      return;
    end if;
  end if;
  created := true;
  if v_room = 'evicted' then
    insert into carrick.ended (seq, id, channel, state, ended_at, attempt_count, dlq_reason)
    values (v_seq, id, p_channel, 'dead', v_now, 0, 'evicted');
    state := 'dead';
    return;
  end if;
  v_due := least(coalesce(p_created_at, v_now), v_now) + coalesce(least(p_delay_seconds, p_max_wait_seconds), 0) * interval '1 second';
  insert into carrick.work (seq, id, channel, tenant_id, principal, group_key, size, priority, due, rank, max_wait_at, delayed)
  values (v_seq, id, p_channel, p_tenant_id, p_principal, p_group_key, v_size, p_priority, v_due,
          carrick._rank(v_due, p_priority), v_now + p_max_wait_seconds * interval '1 second', p_delay_seconds is not null);
  state := 'pending';
  if current_setting('transaction_isolation') in ('repeatable read', 'serializable') -- as _wake
     or exists (select from carrick.sleeper s where s.channel = p_channel and s.until > v_now) then
    perform pg_notify('carrick_put', p_channel);
  end if;
end $$;

create function carrick._refuse_range(
  p_event_type text, p_priority int, p_delay_seconds double precision, p_max_wait_seconds double precision) returns void
  language plpgsql as $$
begin
  if p_event_type = '' then
    perform carrick._fail('CK004', 'event_type: is empty', 'accepted: 1 to 255 characters');
  elsif p_priority not between -1000 and 1000 then
    perform carrick._fail('CK004', format('priority: %s is out of range', p_priority), 'accepted: -1000 to 1000');
  elsif p_delay_seconds not between 0 and 31622400 then
    perform carrick._fail('CK004', format('delay_seconds: %s is out of range', p_delay_seconds), 'accepted: 0 to 31622400');
  end if;
  perform carrick._fail('CK004', format('max_wait_seconds: %s is out of range', p_max_wait_seconds), 'accepted: 0 to 31622400');
end $$;

-- The entry (or the memory of one) that a key belongs to: its id when the content is the same, a problem when it is not.
create function carrick._known_key(
  c carrick.channel, p_tenant_id text, p_key text, p_event_type text, p_payload text, p_group_key text, p_principal text,
  out id uuid, out created boolean, out state text, out problem text)
  language plpgsql as $$
declare
  r carrick.record;
  m carrick.remembered_key;
begin
  created := false;
  select x.* into r from carrick.record x where x.channel = c.name and x.tenant_id = p_tenant_id and x.key = p_key;
  if found then
    if r.event_type = p_event_type and r.group_key is not distinct from p_group_key
       and r.principal is not distinct from p_principal and carrick._same_json(r.payload::text, p_payload) then
      id := r.id;
      state := carrick._state_of(r.seq);
    else
      problem := 'key_reused';
    end if;
    return;
  end if;
  select x.* into m from carrick.remembered_key x
   where x.channel = c.name and x.tenant_id = p_tenant_id and x.key = p_key and x.forget_at > carrick.clock();
  if found then
    if m.content_hash = carrick._content_hash(p_event_type, p_payload, p_group_key, p_principal) then
      id := m.id;
      state := m.state;
    else
      problem := 'key_reused';
    end if;
  end if;
end $$;

create function carrick._check_text(p_name text, p_value text, p_empty boolean default false) returns void
  language plpgsql immutable as $$
begin
  if p_value is null or (p_value = '' and not p_empty) or char_length(p_value) > 255 then
    perform carrick._fail('CK004', format('%s: %s', p_name, coalesce(char_length(p_value) || ' characters', 'null')),
                          format('accepted: text of %s to 255 characters', (not p_empty)::int));
  end if;
end $$;

-- Some languages know no other years, and no infinity.
create function carrick._check_time(p_name text, p_value timestamptz) returns void
  language plpgsql immutable as $$
begin
  if p_value < '0002-01-01 00:00:00+00' or p_value >= '9999-01-01 00:00:00+00' then
    perform carrick._fail('CK004', format('%s: %s is out of range', p_name, p_value), 'accepted: a time in the years 2 to 9998');
  end if;
end $$;

create function carrick._check_put(
  p_event_type text, p_payload json, p_key text, p_tenant_id text, p_group_key text, p_principal text, p_headers jsonb,
  p_occurred_at timestamptz, p_delay_seconds numeric, p_max_wait_seconds numeric) returns void
  language plpgsql as $$
begin
  perform carrick._check_text('event_type', p_event_type);
  if p_payload is null then
    perform carrick._fail('CK004', 'payload: null', 'accepted: a JSON value');
  end if;
  perform carrick._check_text('tenant_id', coalesce(p_tenant_id, ''), true);
  perform carrick._check_text(given.name, given.value)
     from (values ('key', p_key), ('group_key', p_group_key), ('principal', p_principal)) as given(name, value)
    where given.value is not null;
  if jsonb_typeof(p_headers) <> 'object' or octet_length(p_headers::text) > 65536 then
    perform carrick._fail('CK004', 'headers: no object, or too large', 'accepted: a JSON object of at most 65536 bytes');
  end if;
  perform carrick._check_time('occurred_at', p_occurred_at);
  if p_max_wait_seconds is not null and p_delay_seconds is null then
    perform carrick._fail('CK004', 'max_wait_seconds: given without delay_seconds', 'accepted: both, or delay_seconds alone');
  end if;
end $$;

create function carrick.put(
  channel text, event_type text, payload json, key text default null, tenant_id text default '',
  group_key text default null, principal text default null, priority int default 0, headers jsonb default null,
  occurred_at timestamptz default null, delay_seconds numeric default null, max_wait_seconds numeric default null,
  out id uuid, out created boolean, out state text)
  language plpgsql as $$
declare
  p record;
  v_channel alias for channel;
  v_key alias for key;
begin
  if event_type is null or payload is null or key = '' or group_key = '' or principal = ''
     or greatest(char_length(event_type), char_length(key), char_length(tenant_id), char_length(group_key), char_length(principal)) > 255
     or headers is not null or occurred_at is not null or max_wait_seconds is not null then
    perform carrick._check_put(event_type, payload, key, tenant_id, group_key, principal, headers, occurred_at, delay_seconds, max_wait_seconds);
  end if;
  select * into p from carrick._put(channel, event_type, payload, key, coalesce(tenant_id, ''), group_key, principal,
    coalesce(priority, 0), headers, occurred_at, delay_seconds::double precision, max_wait_seconds::double precision,
    null, null, null);
  if p.problem is not null then
    perform carrick._raise_problem(p.problem, v_channel, v_key);
  end if;
  id := p.id;
  created := p.created;
  state := p.state;
end $$;

create function carrick._raise_problem(p_problem text, p_channel text, p_key text) returns void
  language plpgsql as $$
begin
  case p_problem
    when 'unknown_channel' then
      perform carrick._known_channel(p_channel);
    when 'payload_too_large' then
      perform carrick._fail('CK004', format('payload: larger than max_payload_bytes of channel %L', p_channel),
        format('accepted: at most %s bytes', (select c.max_payload_bytes from carrick.channel c where c.name = p_channel)));
    when 'key_reused' then
      perform carrick._fail('CK002', format('key %L in channel %L was already put with other content', p_key, p_channel),
                            'use a key of its own for each entry');
    when 'id_reused' then
      perform carrick._fail('CK004', 'id: is that of an entry with another key', 'accepted: a UUID that is new, or none');
    when 'backlog_full' then
      perform carrick._fail('CK003', format('channel %L is full: its waiting entries reach max_backlog_bytes', p_channel),
                            'wait for deliveries, or raise max_backlog_bytes');
  end case;
end $$;

-- What a bulk put must know before it starts: the clock, that many sequence numbers, and per known channel the largest
-- payload and whether it is bounded. Relays that rest are notified when its transaction commits.
create function carrick._before_bulk(
  p_channels text[], p_count int, out now timestamptz, out seqs bigint[], out channels text[],
  out max_payload_bytes int[], out bounded boolean[])
  language plpgsql as $$
begin
  select array_agg(c.name), array_agg(c.max_payload_bytes), array_agg(c.max_backlog_bytes is not null)
    into channels, max_payload_bytes, bounded from carrick.channel c where c.name = any(p_channels);
  now := carrick.clock();
  perform carrick._wake(c) from unnest(channels) c;
  seqs := array(select nextval('carrick.record_seq_seq') from generate_series(1, p_count));
end $$;

-- Puts entries one after the other, all or none: on a problem nothing is written and one row tells what and at which entry.
create function carrick._put_many(
  p_channel text[], p_event_type text[], p_payload text[], p_key text[], p_tenant_id text[], p_group_key text[],
  p_principal text[], p_priority int[], p_headers text[], p_occurred_at timestamptz[], p_delay_seconds double precision[],
  p_max_wait_seconds double precision[], p_traceparent text[], p_id uuid[])
  returns table (id uuid, created boolean, state text, problem text, problem_at int)
  language plpgsql as $$
declare
  p record;
  v_problem text;
  v_problem_at int;
  v_ids uuid[] := '{}';
  v_created boolean[] := '{}';
  v_states text[] := '{}';
begin
  begin
    for v_at in 1..cardinality(p_channel) loop
      select * into p from carrick._put(
        p_channel[v_at], p_event_type[v_at], p_payload[v_at]::json, p_key[v_at], p_tenant_id[v_at], p_group_key[v_at],
        p_principal[v_at], p_priority[v_at], p_headers[v_at]::jsonb, p_occurred_at[v_at], p_delay_seconds[v_at],
        p_max_wait_seconds[v_at], p_traceparent[v_at], null, p_id[v_at]);
      if p.problem is not null then
        v_problem := p.problem;
        v_problem_at := v_at - 1;
        raise exception using errcode = 'CK000';
      end if;
      v_ids := v_ids || p.id;
      v_created := v_created || p.created;
      v_states := v_states || p.state;
    end loop;
  exception when sqlstate 'CK000' then
    return query select null::uuid, null::boolean, null::text, v_problem, v_problem_at;
    return;
  end;
  return query select u.*, null::text, null::int from unnest(v_ids, v_created, v_states) as u;
end $$;
