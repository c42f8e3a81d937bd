-- public.sync_outbox: channel `cloud` as the table of "Edge Sync Forwarder - Outbox Implementation", with its names of the
-- states. Writes become the engine's own operations; what the two views share stands in 0001_outbox_view.sql.

select carrick._compat_reserve('sync_outbox');
select carrick.declare_channel('cloud', '{"mode": "ordered", "one_tenant": true}');

-- A state by any name that an outbox has for it.
create function carrick._compat_state(p_status text) returns text
  language plpgsql immutable as $$
begin
  case
    when p_status = 'pending' then return 'pending';
    when p_status in ('claimed', 'sending', 'processing') then return 'claimed';
    when p_status in ('acked', 'delivered', 'completed') then return 'delivered';
    when p_status in ('dlq', 'dead', 'failed') then return 'dead';
    else
      perform carrick._fail('CK004', format('status: unknown status %s', coalesce(quote_literal(p_status), 'null')),
        'accepted: pending, claimed (sending, processing), acked (delivered, completed), dlq (dead, failed)');
  end case;
end $$;

-- occurred_at falls back on created_at: claims in the manner of that document order by it.
create view public.sync_outbox as
select r.id, r.tenant_id, r.event_type,
       case p.state when 'delivered' then 'acked' when 'dead' then 'dlq' else p.state end as status,
       p.due as next_attempt_at, r.payload as payload_json, p.owner as claimed_by, p.claimed_at,
       p.expires_at as lease_expires_at,
       coalesce(p.attempt_count, (select t.attempt_count from carrick.trouble t where t.seq = p.seq), 0) as attempt_count,
       case when p.attempt_count > 0 then p.ended_at
            else (select t.last_attempt_at from carrick.trouble t where t.seq = p.seq) end as last_attempt_at,
       coalesce(p.last_error_code, (select t.last_error_code from carrick.trouble t where t.seq = p.seq)) as last_error_code,
       coalesce(p.last_error_message,
                (select t.last_error_message from carrick.trouble t where t.seq = p.seq)) as last_error_message,
       case p.state when 'dead' then p.ended_at end as failed_at, p.dlq_reason, r.priority, r.payload_size_bytes,
       coalesce(r.occurred_at, r.created_at) as occurred_at, r.created_at
  from carrick.record r
  join carrick._compat_place p on p.seq = r.seq and p.id = r.id
 where r.channel = 'cloud' and p.channel = 'cloud';
comment on view public.sync_outbox is 'Channel cloud of Carrick, for SQL written against a table of that name.';

create function carrick._compat_sync_row(p_id uuid) returns public.sync_outbox
  language sql stable
  set enable_seqscan = off
  as $$ select o from public.sync_outbox o where o.id = p_id $$;

-- created_at and payload_size_bytes are the database's own; what a caller gives for them is not taken over.
create function carrick._compat_sync_insert() returns trigger
  language plpgsql as $$
declare
  c carrick.channel := carrick._known_channel('cloud'::text);
  v_to text := carrick._compat_state(coalesce(new.status, 'pending'));
  p record;
  v_seq bigint;
begin
  if new.event_type is null or length(new.event_type) not between 1 and 255 then
    perform carrick._fail('CK004', format('event_type: %s characters', coalesce(length(new.event_type)::text, 'null, not')),
                          'accepted: text of 1 to 255 characters');
  end if;
  if new.payload_json is null then
    perform carrick._fail('CK004', 'payload_json: null', 'accepted: a JSON value');
  end if;
  if v_to = 'claimed' and coalesce(new.claimed_by, '') = '' then
    perform carrick._fail('CK004', 'claimed_by: empty', 'accepted: the name of the worker that has the entry');
  end if;
  perform carrick._check_text('tenant_id', coalesce(new.tenant_id, ''), true), carrick._check_time('occurred_at', new.occurred_at);
  select * into p from carrick._put('cloud', new.event_type, new.payload_json, null, coalesce(new.tenant_id, ''), null, null,
                                    coalesce(new.priority, 0), null, new.occurred_at, null, null, null, null, new.id);
  if p.problem is not null then
    perform carrick._raise_problem(p.problem, 'cloud', null);
  end if;
  if p.state = 'pending' then
    select r.seq into v_seq from carrick.record r where r.id = p.id;
    if new.next_attempt_at is not null then
      perform carrick._compat_due(v_seq, new.next_attempt_at);
    end if;
    perform carrick._compat_history(v_seq, 'attempt_count', new.attempt_count, new.last_attempt_at, new.last_error_code,
                                    new.last_error_message);
    if v_to = 'claimed' then
      perform carrick._compat_check_lease(coalesce(new.lease_expires_at, carrick.clock()));
      perform carrick._compat_take(c, p.id, null, new.claimed_by, new.claimed_at, new.lease_expires_at);
    elsif v_to <> 'pending' then
      perform carrick._compat_sync_end(v_seq, v_to, new.failed_at, new.dlq_reason);
      update carrick.ended e set attempt_count = coalesce(new.attempt_count, e.attempt_count) where e.seq = v_seq;
    end if;
  end if;
  return carrick._compat_sync_row(p.id);
end $$;

-- Ends a waiting entry: as delivered, or as dead with the reason given.
create function carrick._compat_sync_end(p_seq bigint, p_to text, p_failed_at timestamptz, p_reason text) returns boolean
  language plpgsql as $$
begin
  if p_to = 'delivered' then
    return carrick._compat_deliver(p_seq);
  end if;
  perform carrick._end_waiting(p_seq, coalesce(p_reason, 'rejected'));
  update carrick.ended e set ended_at = coalesce(p_failed_at, e.ended_at) where e.seq = p_seq;
  return true;
end $$;

-- Which columns an update may change, by where the entry is and where it goes.
create function carrick._compat_sync_columns(p_from text, p_to text) returns text[]
  language sql immutable as $$
  select case p_from || ' ' || p_to
    when 'pending pending' then array['next_attempt_at']
    when 'pending claimed' then array['status'] || lease
    when 'claimed claimed' then array['status'] || lease
    when 'claimed pending' then array['status', 'next_attempt_at'] || lease || attempt
    when 'claimed delivered' then array['status', 'next_attempt_at'] || lease || attempt
    when 'claimed dead' then array['status', 'next_attempt_at'] || lease || attempt || failure
    when 'pending delivered' then array['status', 'attempt_count', 'last_attempt_at']
    when 'pending dead' then array['status'] || failure
    when 'dead pending' then array['status', 'next_attempt_at'] || attempt || failure
    when 'dead dead' then array['status'] || failure
    else '{}' end
    from (select array['claimed_by', 'claimed_at', 'lease_expires_at'] as lease,
                 array['attempt_count', 'last_attempt_at', 'last_error_code', 'last_error_message'] as attempt,
                 array['failed_at', 'dlq_reason'] as failure) columns
$$;

-- Takes a waiting entry, or one whose lease is over, for the worker named. False when it is not to be had.
create function carrick._compat_sync_take(c carrick.channel, o public.sync_outbox, n public.sync_outbox) returns boolean
  language plpgsql as $$
declare
  v_claimed_at timestamptz := nullif(n.claimed_at, o.claimed_at);
  v_until timestamptz := nullif(n.lease_expires_at, o.lease_expires_at);
begin
  if coalesce(n.claimed_by, '') = '' then
    perform carrick._fail('CK004', 'claimed_by: empty', 'accepted: the name of the worker that takes the entry');
  end if;
  if v_until is not null then
    perform carrick._compat_check_lease(v_until);
  end if;
  if o.status = 'claimed' then
    perform carrick._return_expired(c.name, carrick.clock());
  end if;
  return carrick._compat_take(c, o.id, null, n.claimed_by, v_claimed_at, v_until);
end $$;

-- Any other way of an entry. False when it moved on since the statement read it.
create function carrick._compat_sync_move(
  c carrick.channel, o public.sync_outbox, n public.sync_outbox, p_from text, p_to text) returns boolean
  language plpgsql as $$
declare
  at record;
  v_tried boolean := n.attempt_count is distinct from o.attempt_count;
begin
  select * into at from carrick._compat_lock(o.id);
  if at.state is distinct from p_from or (at.owner, at.claimed_at) is distinct from (o.claimed_by, o.claimed_at) then
    return false;
  end if;
  case p_from || ' ' || p_to
    when 'pending delivered', 'pending dead' then
      return carrick._compat_sync_end(at.seq, p_to, n.failed_at, n.dlq_reason);
    when 'claimed claimed' then
      perform carrick._compat_age(at.batch_id, at.seq, coalesce(n.claimed_at, o.claimed_at), n.lease_expires_at);
    when 'claimed pending' then
      perform carrick._compat_finish(at.token, o.id, case when v_tried then 'retry' else 'released' end,
                                     n.last_error_code, n.last_error_message);
    when 'claimed delivered' then
      perform carrick._compat_finish(at.token, o.id, 'delivered', null, null);
    when 'claimed dead' then
      perform carrick._compat_finish(at.token, o.id, 'rejected', n.last_error_code, n.last_error_message);
    when 'dead pending' then
      perform carrick.redrive(c.name, array[o.id], spread_seconds => 0);
    else null; -- it stays where it is, with other times or another reason
  end case;
  if p_to = 'dead' then
    update carrick.ended e set dlq_reason = coalesce(n.dlq_reason, e.dlq_reason), ended_at = coalesce(n.failed_at, e.ended_at)
     where e.seq = at.seq;
  elsif p_to = 'pending' and n.next_attempt_at is distinct from o.next_attempt_at then
    perform carrick._compat_due(at.seq, n.next_attempt_at);
  end if;
  return true;
end $$;

-- What an update must not say, whatever it changes.
create function carrick._compat_sync_check(o public.sync_outbox, n public.sync_outbox, p_from text, p_to text) returns void
  language plpgsql as $$
begin
  perform carrick._compat_allow(carrick._compat_changed(row_to_json(o), row_to_json(n)),
                                carrick._compat_sync_columns(p_from, p_to), p_from, p_to);
  if p_to = 'pending' and n.next_attempt_at is null and p_from <> 'dead' then
    perform carrick._fail('CK004', 'next_attempt_at: null', 'accepted: a time');
  end if;
  if p_from = 'dead' and n.attempt_count not in (0, o.attempt_count) then
    perform carrick._fail('CK004', format('attempt_count: %s for an entry that starts again', n.attempt_count), 'accepted: 0');
  elsif p_from <> 'dead' then
    perform carrick._compat_check_attempts('attempt_count', o.attempt_count, n.attempt_count);
  end if;
  if p_from = 'claimed' and p_to = 'pending' and n.attempt_count = o.attempt_count
     and (n.last_error_code, n.last_error_message) is distinct from (o.last_error_code, o.last_error_message) then
    perform carrick._fail('CK004', 'last_error_code, last_error_message: changed without an attempt',
                          'accepted: together with attempt_count = attempt_count + 1');
  end if;
  if p_from = 'claimed' and p_to = 'claimed' and n.claimed_by <> o.claimed_by and o.lease_expires_at > carrick.clock() then
    perform carrick._fail('CK004', format('claimed_by: entry %s is claimed by %L until %s', o.id, o.claimed_by, o.lease_expires_at),
                          'accepted: set its status to pending first, or wait until the lease is over');
  end if;
end $$;

create function carrick._compat_sync_update() returns trigger
  language plpgsql as $$
declare
  c carrick.channel := carrick._known_channel('cloud'::text);
  v_from text := carrick._compat_state(old.status);
  v_to text := carrick._compat_state(new.status);
  v_done boolean;
begin
  if v_from = 'claimed' and v_to = 'claimed' and new.claimed_by is null then
    v_to := 'pending'; -- that document's claim takes it again, so it waits
  end if;
  perform carrick._compat_sync_check(old, new, v_from, v_to);
  if v_to = 'claimed' and (v_from = 'pending' or new.claimed_by <> old.claimed_by
                           or (new.claimed_at <> old.claimed_at and new.lease_expires_at > carrick.clock()
                               and old.lease_expires_at <= carrick.clock())) then
    v_done := carrick._compat_sync_take(c, old, new);
  else
    v_done := carrick._compat_sync_move(c, old, new, v_from, v_to);
  end if;
  return case when v_done then carrick._compat_sync_row(old.id) end;
end $$;

create trigger sync_outbox_insert instead of insert on public.sync_outbox
  for each row execute function carrick._compat_sync_insert();
create trigger sync_outbox_update instead of update on public.sync_outbox
  for each row execute function carrick._compat_sync_update();
create trigger sync_outbox_delete instead of delete on public.sync_outbox
  for each row execute function carrick._compat_delete();
