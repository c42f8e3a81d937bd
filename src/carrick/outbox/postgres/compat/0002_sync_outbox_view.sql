-- public.sync_outbox: channel `cloud` as the table of "Edge Sync Forwarder - Outbox Implementation", with its names of the
-- states. Writes become the engine's own operations; what the two views share stands in 0001_outbox_view.sql.

select carrick._compat_reserve('sync_outbox');
select carrick.declare_channel('cloud', '{"mode": "stream", "one_tenant": true}');

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
  language sql stable as $$ select o from public.sync_outbox o where o.id = p_id $$;

-- created_at and payload_size_bytes are the database's own; what a caller gives for them is not taken over.
create function carrick._compat_sync_insert() returns trigger
  language plpgsql as $$
declare
  c carrick.channel := carrick._channel('cloud');
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
      perform carrick._compat_sync_end(c, p.id, v_seq, v_to, new.failed_at, new.dlq_reason);
      update carrick.ended e set attempt_count = coalesce(new.attempt_count, e.attempt_count) where e.seq = v_seq;
    end if;
  end if;
  return carrick._compat_sync_row(p.id);
end $$;

-- Ends a waiting entry: as delivered, or as dead with the reason given.
create function carrick._compat_sync_end(
  c carrick.channel, p_id uuid, p_seq bigint, p_to text, p_failed_at timestamptz, p_reason text) returns boolean
  language plpgsql as $$
begin
  if p_to = 'delivered' then
    return carrick._compat_deliver(c, p_id);
  end if;
  perform carrick._end_waiting(p_seq, coalesce(p_reason, 'rejected'));
  update carrick.ended e set ended_at = coalesce(p_failed_at, e.ended_at) where e.seq = p_seq;
  return true;
end $$;

-- Which columns an update may change, by where the entry is and where it goes.
create function carrick._compat_sync_columns(p_from text, p_to text) returns text[]
  language sql immutable as $$
  select case p_from || ' ' || p_to
    when 'pending pending' then '{next_attempt_at}'
    when 'pending claimed' then '{status, claimed_by, claimed_at, lease_expires_at}'
    when 'claimed claimed' then '{status, claimed_by, claimed_at, lease_expires_at}'
    when 'claimed pending' then '{status, claimed_by, claimed_at, lease_expires_at, next_attempt_at, attempt_count, last_attempt_at, last_error_code, last_error_message}'
    when 'claimed delivered' then '{status, claimed_by, claimed_at, lease_expires_at, next_attempt_at, attempt_count, last_attempt_at, last_error_code, last_error_message}'
    when 'claimed dead' then '{status, claimed_by, claimed_at, lease_expires_at, next_attempt_at, attempt_count, last_attempt_at, last_error_code, last_error_message, failed_at, dlq_reason}'
    when 'pending delivered' then '{status, attempt_count, last_attempt_at}'
    when 'pending dead' then '{status, failed_at, dlq_reason}'
    when 'dead pending' then '{status, next_attempt_at, attempt_count, last_attempt_at, last_error_code, last_error_message, failed_at, dlq_reason}'
    when 'dead dead' then '{status, failed_at, dlq_reason}'
    else '{}' end::text[]
$$;

-- A claimed entry whose lease is not over: only its times may change, and only under the name that has it.
create function carrick._compat_sync_keep(o public.sync_outbox, n public.sync_outbox) returns void
  language plpgsql as $$
declare
  at record;
begin
  if n.claimed_by <> o.claimed_by then
    perform carrick._fail('CK004', format('claimed_by: entry %s is claimed by %L until %s', o.id, o.claimed_by, o.lease_expires_at),
                          'accepted: set its status to pending first, or wait until the lease is over');
  end if;
  select * into at from carrick._compat_lock(o.id);
  if at.state = 'claimed' and (at.owner, at.claimed_at) = (o.claimed_by, o.claimed_at) then
    perform carrick._compat_age(at.batch_id, at.seq, coalesce(n.claimed_at, o.claimed_at), n.lease_expires_at);
  end if;
end $$;
