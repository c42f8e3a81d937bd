-- Gates: a closed gate holds a channel (`*`), a tenant (`tenant:x`) or a principal (`principal:x`). Held entries are not
-- touched, so they spend no attempts and keep their times (G7).

create function carrick.close_gate(channel text, scope text, seconds numeric, reason text) returns void
  language plpgsql as $$
declare
  v_channel alias for channel;
  v_scope alias for scope;
  v_seconds alias for seconds;
  v_reason alias for reason;
  v_until timestamptz := 'infinity';
begin
  perform carrick._known_channel(v_channel);
  perform carrick._check_scope(v_scope);
  if v_seconds is not null then
    if v_seconds < 0 or v_seconds > 3153600000 then
      perform carrick._fail('CK004', format('seconds: %s is out of range', v_seconds), 'accepted: 0 or more, or null until opened');
    end if;
    v_until := carrick.clock() + v_seconds * interval '1 second';
  end if;
  insert into carrick.gate as g (channel, scope, closed_until, reason)
  values (v_channel, v_scope, v_until, coalesce(v_reason, ''))
  on conflict on constraint gate_pkey do update set closed_until = excluded.closed_until, reason = excluded.reason;
end $$;

create function carrick.open_gate(channel text, scope text) returns void
  language plpgsql as $$
declare
  v_channel alias for channel;
  v_scope alias for scope;
begin
  perform carrick._known_channel(v_channel);
  perform carrick._check_scope(v_scope);
  delete from carrick.gate g where g.channel = v_channel and g.scope = v_scope;
end $$;

create function carrick._check_scope(p_scope text) returns void
  language plpgsql as $$
begin
  if p_scope is null or not (p_scope = '*' or p_scope ~ '^(tenant|principal):.') then
    perform carrick._fail('CK004', format('scope: %s is no gate scope', coalesce(quote_literal(p_scope), 'null')),
                          'accepted: *, tenant:NAME, principal:NAME');
  end if;
end $$;
