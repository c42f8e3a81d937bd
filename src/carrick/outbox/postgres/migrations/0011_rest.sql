-- What relays tell each other through the database: who rests, when something will be due, and who has which duty.

-- When a group may go: in order with its first entry, coalesced by the rules of `_due_group`; null while a lease holds it.
create function carrick._group_due(p_channel text, p_mode text, p_tenant text, p_group_key text, p_held_principals text[])
  returns timestamptz
  language plpgsql stable
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
begin
  if exists (select from carrick._hold(p_channel, p_tenant, p_group_key)) then
    return null;
  elsif p_mode = 'ordered' then
    return (select e.due from carrick._group(p_channel, p_tenant, p_group_key) e order by e.group_key, e.seq limit 1);
  end if;
  return (select greatest(max(e.due) filter (where e.troubled),
                          least(min(e.due) filter (where not e.delayed),
                                coalesce(max(e.due) filter (where e.delayed), min(e.due)), min(e.max_wait_at)))
            from carrick._group(p_channel, p_tenant, p_group_key) e
           where e.principal is null or e.principal <> all (p_held_principals));
end $$;

-- When an entry of a tenant is due next, as far as its first `p_look` entries by rank tell.
create function carrick._lane_due(p_channel text, p_mode text, p_tenant text, p_held_principals text[], p_look int)
  returns timestamptz
  language plpgsql stable
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  if p_mode = 'stream' then
    return (select min(w.due)
              from (select x.due, x.principal from carrick.work x where x.channel = p_channel and x.tenant_id = p_tenant
                     order by x.rank, x.seq limit p_look) w
             where w.principal is null or w.principal <> all (p_held_principals));
  end if;
  return (select min(case when u.group_key is null then u.due
                          else carrick._group_due(p_channel, p_mode, p_tenant, u.group_key, p_held_principals) end)
            from (select w.group_key, min(w.due) as due
                    from (select x.group_key, x.due, x.principal from carrick.work x
                           where x.channel = p_channel and x.tenant_id = p_tenant order by x.rank, x.seq limit p_look) w
                   where w.principal is null or w.principal <> all (p_held_principals)
                   group by w.group_key) u);
end $$;

-- When there is something to do in a channel: an entry is due, a lease ends, or the time of a closed gate is up. Null: nothing is in sight.
-- It costs some index steps per tenant, whatever waits. So it looks at 1000 tenants at most, and where rank is not due time (priorities,
-- groups, principals behind gates) at the first 100 entries of each: what lies behind them may be due earlier than it says.
-- A worker that starts again under its old name must see the lease of its former life end, so leases of all owners count.
create function carrick._next_due(p_channel text) returns timestamptz
  language plpgsql stable
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  c carrick.channel := carrick._known_channel(p_channel);
  v_now timestamptz := carrick.clock();
  v_held_tenants text[] := array(select substr(g.scope, 8) from carrick.gate g
                                  where g.channel = p_channel and g.scope like 'tenant:%' and g.closed_until > v_now);
  v_held_principals text[] := array(select substr(g.scope, 11) from carrick.gate g
                                     where g.channel = p_channel and g.scope like 'principal:%' and g.closed_until > v_now);
  v_next timestamptz;
  v_look int := 1;
  v_lane text;
begin
  v_next := least((select min(l.expires_at) from carrick.lease l where l.channel = p_channel),
                  (select min(g.closed_until) from carrick.gate g
                    where g.channel = p_channel and g.closed_until > v_now and g.closed_until < 'infinity'));
  if exists (select from carrick.gate g where g.channel = p_channel and g.scope = '*' and g.closed_until > v_now) then
    return v_next;
  end if;
  if c.mode <> 'stream' or v_held_principals <> '{}'
     or (select w.priority from carrick.work w where w.channel = p_channel and w.priority <> 0 order by w.priority limit 1) is not null then
    v_look := 100;
  end if;
  foreach v_lane in array carrick._lanes(p_channel, null, 1000, null) loop
    exit when v_next <= v_now;
    if v_lane <> all (v_held_tenants) then
      v_next := least(v_next, carrick._lane_due(p_channel, c.mode, v_lane, v_held_principals, v_look));
    end if;
  end loop;
  return v_next;
end $$;

-- A relay says that it rests. `wrote`: nobody could know before this call commits, so it must look again, by calling again. Else `due_in`
-- is in seconds, and `unseen` tells that a transaction is open that has written into `work` and may not have seen the sleeper (_wake).
-- The locks are looked at first: what they hide is visible to the statement after them. The row is written for three times as long
-- as asked for, so that one that rests again and again need not write each time.
create function carrick._rest(
  p_channel text, p_owner text, p_seconds double precision, out wrote boolean, out due_in double precision, out unseen boolean)
  language plpgsql as $$
declare
  v_now timestamptz := carrick.clock();
begin
  perform carrick._known_channel(p_channel);
  wrote := not exists (select from carrick.sleeper s where s.channel = p_channel and s.owner = p_owner
                          and s.until between v_now + p_seconds * interval '1 second'
                                          and v_now + 3 * p_seconds * interval '1 second');
  if wrote then
    insert into carrick.sleeper as s (channel, owner, until)
    values (p_channel, p_owner, v_now + 3 * p_seconds * interval '1 second')
    on conflict (channel, owner) do update set until = excluded.until;
    return;
  end if;
  unseen := exists (
    select from pg_locks l
     where l.locktype = 'relation' and l.relation = 'carrick.work'::regclass and l.mode = 'RowExclusiveLock' and l.granted
       and l.database = (select d.oid from pg_database d where d.datname = current_database())
       and l.pid is distinct from pg_backend_pid()); -- a prepared transaction has none
  due_in := extract(epoch from carrick._next_due(p_channel) - carrick.clock());
end $$;

-- Whoever is awake needs no notifications. Sleepers that have not come back for long are gone for good.
create function carrick._stir(p_channel text, p_owner text) returns void
  language sql as $$
  delete from carrick.sleeper s
   where s.channel = p_channel and (s.owner = p_owner or s.until < carrick.clock() - interval '1 hour')
$$;

-- Whether the owner has the duty from now on: it had it already, or nobody else has. Two who ask at once take turns on the row.
create function carrick._take_duty(p_duty text, p_owner text, p_seconds double precision) returns boolean
  language plpgsql as $$
declare
  v_now timestamptz := carrick.clock();
begin
  insert into carrick.duty as d (name, owner, until) values (p_duty, p_owner, v_now + p_seconds * interval '1 second')
  on conflict (name) do update set owner = excluded.owner, until = excluded.until
    where d.owner = excluded.owner or d.until <= v_now;
  return found;
end $$;
