-- Gates: a closed gate holds a channel (`*`), a tenant (`tenant:x`) or a principal (`principal:x`). Held entries are not
-- touched, so they spend no attempts and keep their times (G7). A gate that failures closed (`fail_gate`) opens by half when its time is
-- up: one claim goes ahead to try (`_pass_gate` in 0005), and what becomes of it opens the gate or closes it for longer.

-- While a gate is closed, what a person closed is for persons only to change; what the destination asked for, the destination may
-- lengthen; what failures closed, anybody may change.
create function carrick.close_gate(channel text, scope text, seconds numeric, reason text, closed_by text default 'person') returns void
  language plpgsql as $$
declare
  v_channel alias for channel;
  v_scope alias for scope;
  v_seconds alias for seconds;
  v_reason alias for reason;
  v_closed_by alias for closed_by;
  v_until timestamptz := 'infinity';
begin
  perform carrick._known_channel(v_channel);
  perform carrick._check_scope(v_scope);
  perform carrick._check_closed_by(v_closed_by);
  if v_seconds is not null then
    if v_seconds < 0 or v_seconds > 3153600000 then
      perform carrick._fail('CK004', format('seconds: %s is out of range', v_seconds), 'accepted: 0 or more, or null until opened');
    end if;
    v_until := carrick.clock() + v_seconds * interval '1 second';
  end if;
  insert into carrick.gate as g (channel, scope, closed_until, reason, closed_by)
  values (v_channel, v_scope, v_until, coalesce(v_reason, ''), v_closed_by)
  on conflict on constraint gate_pkey do update
    set closed_until = excluded.closed_until, reason = excluded.reason, closed_by = excluded.closed_by
    where v_closed_by = 'person' or g.closed_by = 'failures' or g.closed_until <= carrick.clock()
       or (v_closed_by = 'destination' and g.closed_by = 'destination' and g.closed_until < excluded.closed_until);
  if v_seconds = 0 then
    perform carrick._wake(v_channel);
  end if;
end $$;

-- Counts a failure of the destination and closes the gate for min(cap, 2^(failures - 1)) seconds with equal jitter; for how many seconds
-- it is closed now. While it is closed only the failure of the probe counts, and nothing shortens what a person or the destination asked for.
create function carrick.fail_gate(channel text, scope text, reason text, cap_seconds numeric, probe boolean default false)
  returns double precision
  language plpgsql as $$
declare
  v_channel alias for channel;
  v_scope alias for scope;
  v_reason alias for reason;
  v_cap alias for cap_seconds;
  v_probe alias for probe;
  v_now timestamptz := carrick.clock();
  v_until timestamptz;
begin
  perform carrick._known_channel(v_channel);
  perform carrick._check_scope(v_scope);
  if v_cap is null or v_cap <= 0 or v_cap > 3153600000 then
    perform carrick._fail('CK004', format('cap_seconds: %s is out of range', coalesce(v_cap::text, 'null')), 'accepted: more than 0');
  end if;
  insert into carrick.gate as g (channel, scope, closed_until, reason, consecutive_failures, closed_by)
  values (v_channel, v_scope, v_now + carrick._backoff(1, v_cap::double precision, 1), coalesce(v_reason, ''), 1, 'failures')
  on conflict on constraint gate_pkey do update
    set closed_until = v_now + carrick._backoff(1, v_cap::double precision, g.consecutive_failures + 1),
        reason = excluded.reason, consecutive_failures = g.consecutive_failures + 1, closed_by = 'failures'
    where g.closed_until <= v_now or (v_probe and g.closed_by = 'failures')
  returning g.closed_until into v_until;
  if not found then
    select g.closed_until into v_until from carrick.gate g where g.channel = v_channel and g.scope = v_scope;
  elsif v_probe then -- those who rest would else wait for the end of the probe's lease
    perform carrick._wake(v_channel);
  end if;
  return case when v_until = 'infinity' then 'infinity' else extract(epoch from v_until - v_now) end;
end $$;

-- With `closed_by` only a gate that was closed by that, or whose time is up.
create function carrick.open_gate(channel text, scope text, closed_by text default null) returns void
  language plpgsql as $$
declare
  v_channel alias for channel;
  v_scope alias for scope;
  v_closed_by alias for closed_by;
begin
  perform carrick._known_channel(v_channel);
  perform carrick._check_scope(v_scope);
  if v_closed_by is not null then
    perform carrick._check_closed_by(v_closed_by);
  end if;
  delete from carrick.gate g
   where g.channel = v_channel and g.scope = v_scope
     and (v_closed_by is null or g.closed_by = v_closed_by or g.closed_until <= carrick.clock());
  if found then
    perform carrick._wake(v_channel);
  end if;
end $$;

create function carrick._check_scope(p_scope text) returns void
  language plpgsql as $$
begin
  if p_scope is null or not (p_scope = '*' or p_scope ~ '^(tenant|principal):.') then
    perform carrick._fail('CK004', format('scope: %s is no gate scope', coalesce(quote_literal(p_scope), 'null')),
                          'accepted: *, tenant:NAME, principal:NAME');
  end if;
end $$;

create function carrick._check_closed_by(p_closed_by text) returns void
  language plpgsql as $$
begin
  if p_closed_by is null or p_closed_by not in ('person', 'destination', 'failures') then
    perform carrick._fail('CK004', format('closed_by: %s closes no gate', coalesce(quote_literal(p_closed_by), 'null')),
                          'accepted: person, destination, failures');
  end if;
end $$;
