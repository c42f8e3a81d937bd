-- claim: take due entries for a time. What was picked moves from `work` into one row of `lease`.

-- Keeps other leases off the groups of the picked entries (G4); entries whose group another lease got first drop out.
create function carrick._hold_groups(p_channel text, p_batch uuid, p_picked tid[]) returns tid[]
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_wanted int;
  v_got int;
begin
  with wanted as materialized (
    select distinct w.tenant_id, w.group_key
      from (select w.tenant_id, w.group_key from carrick.work w where w.ctid = any(p_picked) offset 0) w -- by place: no index has a say
     where w.group_key is not null order by 1, 2),
  got as (
    insert into carrick.hold (channel, tenant_id, group_key, batch_id)
    select p_channel, tenant_id, group_key, p_batch from wanted
    on conflict do nothing returning 1)
  select (select count(*) from wanted), (select count(*) from got) into v_wanted, v_got;
  if v_got = v_wanted then
    return p_picked;
  end if;
  return array(
    select p.at from unnest(p_picked) as p(at) cross join lateral carrick._at(p.at) w
     where w.group_key is null
        or exists (select from carrick._hold(p_channel, w.tenant_id, w.group_key) h where h.batch_id = p_batch));
end $$;

-- Chooses what to claim: entries that come back apart first, else by the channel's mode, tenants in turn.
-- `p_floor`: only fresh entries, those that rank from there on; '-infinity' for all. What comes back apart is never fresh.
create function carrick._pick(
  c carrick.channel, p_tenant text, p_now timestamptz, p_floor timestamptz, p_rows int, p_bytes bigint,
  p_known text[], p_mark_ranks timestamptz[], p_mark_seqs bigint[], p_gated boolean) returns tid[]
  language plpgsql as $$
declare
  v_held_tenants text[] := '{}';
  v_held_principals text[] := '{}';
  v_horizon timestamptz := p_now;
  v_fresh boolean := p_floor > '-infinity';
  v_one boolean := c.one_tenant or c.mode = 'coalesce';
  v_apart text[];
  v_prioritised boolean;
  v_lanes text[];
  v_start text;
  v_chunk int;
  v_open text[];
  v_cut boolean;
  v_picked tid[] := '{}';
begin
  if p_gated then
    v_held_tenants := array(select substr(g.scope, 8) from carrick.gate g
                             where g.channel = c.name and g.scope like 'tenant:%' and g.closed_until > p_now);
    v_held_principals := array(select substr(g.scope, 11) from carrick.gate g
                                where g.channel = c.name and g.scope like 'principal:%' and g.closed_until > p_now);
  end if;
  select array(select distinct w.tenant_id from carrick._specials(c.name, p_now) w where not v_fresh),
         (select w.priority from carrick.work w where w.channel = c.name and w.priority <> 0 order by w.priority limit 1) is not null,
         (select t.tenant_id from carrick.turn t where t.channel = c.name and t.fresh = v_fresh)
    into v_apart, v_prioritised, v_start;
  if v_prioritised then
    v_horizon := p_now + interval '10000 minutes'; -- the lowest priority ranks that far behind its due time
    p_known := null; -- entries with a priority do not rank by age, so marks would pass them over
  end if;
  if p_tenant is not null or (not c.fair and not v_one) then -- no turns to take
    if v_apart <> '{}' then
      v_picked := carrick._pick_special(c, null, p_tenant, p_now, v_held_tenants, v_held_principals, p_rows, p_bytes);
    end if;
    if v_picked <> '{}' or p_tenant = any (v_held_tenants) then
      return v_picked;
    elsif p_tenant is null then
      return carrick._pick_oldest(c, p_now, p_floor, v_horizon, v_held_tenants, v_held_principals, p_rows, p_bytes);
    end if;
    select x.picked into v_picked
      from carrick._pick_lanes(c, array[p_tenant], p_known, p_mark_ranks, p_mark_seqs, p_now, p_floor, v_horizon,
                               v_held_principals, p_rows, p_bytes) x;
    return v_picked;
  end if;
  v_lanes := carrick._lanes(c.name, v_start, p_rows + 1, p_known);
  while v_lanes <> '{}' loop
    if v_lanes[1] = any (v_apart) then
      v_chunk := 1;
      v_picked := carrick._pick_special(c, v_lanes[1], null, p_now, v_held_tenants, v_held_principals, p_rows, p_bytes);
      v_apart := array_remove(v_apart, v_lanes[1]);
      continue when v_picked = '{}';
    else
      v_chunk := carrick._chunk(v_lanes, v_apart, case when v_one then 1 else p_rows end);
      v_open := v_lanes[1:v_chunk];
      if v_held_tenants <> '{}' then
        v_open := array(select l from unnest(v_open) l where l <> all (v_held_tenants));
      end if;
      select x.* into v_picked, v_cut from carrick._pick_lanes(
        c, v_open, p_known, p_mark_ranks, p_mark_seqs, p_now, p_floor, v_horizon, v_held_principals, p_rows, p_bytes) x;
      if v_cut and v_chunk > 1 and v_picked <> '{}' then
        -- the limit in bytes left some out: the first entry of each comes before the second of any, so those left out are the last in turn
        v_chunk := (select max(array_position(v_lanes, w.tenant_id::text))
                      from unnest(v_picked) as p(at) cross join lateral carrick._at(p.at) w);
      end if;
    end if;
    exit when v_picked <> '{}';
    v_lanes := v_lanes[v_chunk + 1:] || carrick._lanes_beyond(c.name, v_start, v_lanes[cardinality(v_lanes)], p_rows, p_known);
  end loop;
  if v_picked <> '{}' and cardinality(v_lanes) > v_chunk then -- somebody else waits: they are next
    update carrick.turn t set tenant_id = v_lanes[v_chunk]
     where t.tenant_id is distinct from v_lanes[v_chunk]
       and t.ctid = (select x.ctid from carrick.turn x where x.channel = c.name and x.fresh = v_fresh for update skip locked);
  end if;
  return v_picked;
end $$;

-- How many tenants, from the first on, may share one batch: none of them has entries that must come apart.
create function carrick._chunk(p_lanes text[], p_apart text[], p_most int) returns int
  language plpgsql immutable as $$
begin
  if p_apart = '{}' then
    return least(p_most, cardinality(p_lanes));
  end if;
  return (select least(p_most, coalesce(min(l.n) - 1, cardinality(p_lanes)))
            from unnest(p_lanes) with ordinality as l(tenant, n) where l.tenant = any (p_apart));
end $$;

-- The next tenants of the round that began after `p_start`, behind `p_last`; none when the round is complete.
create function carrick._lanes_beyond(p_channel text, p_start text, p_last text, p_max int, p_known text[]) returns text[]
  language plpgsql stable as $$
declare
  v_round text[] := carrick._lanes(p_channel, p_start, 2147483647, p_known);
  v_at int := array_position(v_round, p_last);
begin
  return v_round[v_at + 1:v_at + p_max];
end $$;

create function carrick._pick_lanes(
  c carrick.channel, p_lanes text[], p_known text[], p_mark_ranks timestamptz[], p_mark_seqs bigint[], p_now timestamptz,
  p_floor timestamptz, p_horizon timestamptz, p_held_principals text[], p_rows int, p_bytes bigint, out picked tid[],
  out cut boolean)
  language plpgsql
  set plan_cache_mode = force_generic_plan as $$
declare
  v_ranks timestamptz[];
  v_seqs bigint[];
  v_grouped boolean;
begin
  if p_lanes = '{}' then
    picked := '{}';
    return;
  end if;
  case c.mode
    when 'stream' then
      if p_known is not null or p_floor > '-infinity' then -- else all start at the oldest
        select array_agg(greatest(m.rank, p_floor) order by l.n),
               array_agg(case when m.rank >= p_floor then m.seq else 0 end order by l.n)
          into v_ranks, v_seqs
          from unnest(p_lanes) with ordinality as l(tenant, n)
         cross join lateral (select array_position(p_known, l.tenant) as at) k
         cross join lateral (select p_mark_ranks[k.at] as rank, p_mark_seqs[k.at] as seq) m;
      end if;
      select x.picked, x.cut into picked, cut
        from carrick._pick_stream(c.name, p_lanes, v_ranks, v_seqs, p_now, p_horizon, p_held_principals, p_rows, p_bytes) x;
    when 'ordered' then
      if not carrick._begins_grouped(c.name, p_lanes[1], p_floor) then -- then perhaps none does, and nothing is in order
        select x.picked, x.cut, x.grouped into picked, cut, v_grouped
          from carrick._pick_stream(c.name, p_lanes, array_fill(p_floor, array[cardinality(p_lanes)]), null, p_now, p_horizon,
                                    p_held_principals, p_rows, p_bytes) x;
        if not v_grouped then
          return;
        end if;
      end if;
      select x.* into picked, cut
        from carrick._pick_ordered(c.name, true, p_lanes, p_now, p_floor, p_horizon, p_held_principals, p_rows, p_bytes) x;
    when 'coalesce' then
      picked := carrick._pick_coalesce(c.name, p_lanes[1], p_now, p_floor, p_horizon, p_held_principals, p_rows, p_bytes);
  end case;
end $$;

-- The intent of the oldest doubt in a group: of entries that are frozen behind the gate of their principal while others of it go on.
create function carrick._open_intent(p_channel text, p_tenant text, p_group_key text) returns jsonb
  language sql stable as $$
  select t.intent from carrick._group(p_channel, p_tenant, p_group_key) e cross join lateral carrick._trouble(e.seq) t
   where e.special and t.frozen_batch is not null and t.intent is not null
   order by e.seq limit 1
$$;

create type carrick.claimed_entry as (
  id uuid, seq bigint, channel text, tenant_id text, principal text, group_key text, event_type text, key text,
  payload json, headers jsonb, payload_size_bytes int, priority int, traceparent text, occurred_at timestamptz,
  created_at timestamptz, attempt_count int, crash_count int, intent jsonb,
  lease_token uuid, lease_expires_at timestamptz, batch_id uuid, claimed_by text, claimed_at timestamptz,
  next_attempt_at timestamptz, probe boolean);

-- How the gate of the whole channel stands: `closed`, or `half open` when failures closed it and its time is up. Half open, one claim may
-- try: it has the gate locked then, and closes it for the length of its lease (G7). A claim that finds it locked takes nothing.
create function carrick._pass_gate(p_channel text, p_now timestamptz, out closed boolean, out half_open boolean)
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  select g.closed_until > p_now, g.consecutive_failures > 0 into closed, half_open
    from carrick.gate g where g.channel = p_channel and g.scope = '*';
  if not found or closed or not half_open then
    return;
  end if;
  perform from carrick.gate g
    where g.channel = p_channel and g.scope = '*' and g.closed_until <= p_now for update skip locked;
  closed := not found;
end $$;

-- One entry goes ahead through a half-open gate: until its lease ends nobody else does.
create function carrick._start_probe(p_channel text, p_until timestamptz) returns void
  language sql as $$
  update carrick.gate g set closed_until = p_until, closed_by = 'failures' where g.channel = p_channel and g.scope = '*'
$$;

create function carrick._claim(
  p_channel text, p_owner text, p_max_rows int, p_max_bytes int, p_lease_seconds int, p_tenant text, p_token uuid,
  p_known text[], p_mark_ranks timestamptz[], p_mark_seqs bigint[], p_fresh_seconds double precision)
  returns setof carrick.claimed_entry
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  c carrick.channel := carrick._known_channel(p_channel);
  v_now timestamptz := carrick.clock();
  v_token uuid := coalesce(p_token, gen_random_uuid());
  v_batch uuid := carrick.uuid7();
  v_until timestamptz;
  v_floor timestamptz;
  v_expired boolean;
  v_gated boolean;
  v_closed boolean;
  v_probe boolean := false;
  v_rows int;
  v_grouped boolean := c.mode <> 'stream';
  v_frozen boolean;
  v_picked tid[];
begin
  if p_fresh_seconds < 0 or p_fresh_seconds > 31622400 then
    perform carrick._fail('CK004', format('fresh_seconds: %s is out of range', p_fresh_seconds), 'accepted: 0 to 31622400');
  end if;
  perform carrick._check_limit('max_rows', p_max_rows, 10000), carrick._check_limit('max_bytes', p_max_bytes, 1073741824),
          carrick._check_limit('lease_seconds', p_lease_seconds, 86400);
  if p_owner is null or p_owner = '' then
    perform carrick._fail('CK004', 'owner: must not be empty', 'accepted: a name of the worker that claims');
  end if;
  v_until := v_now + coalesce(p_lease_seconds, c.lease_seconds) * interval '1 second';
  v_floor := coalesce(v_now - p_fresh_seconds * interval '1 second', '-infinity');
  select exists (select from carrick.lease l where l.channel = p_channel and l.expires_at <= v_now),
         exists (select from carrick.gate g where g.channel = p_channel)
    into v_expired, v_gated;
  if v_expired then
    perform carrick._return_expired(p_channel, v_now);
  end if;
  if v_gated then
    select g.closed, coalesce(g.half_open, false) into v_closed, v_probe from carrick._pass_gate(p_channel, v_now) g;
    if v_closed then
      return;
    end if;
  end if;
  v_rows := case when v_probe then 1 else coalesce(p_max_rows, c.batch_rows) end;
  if p_known is null and not exists (select from carrick.work w where w.channel = p_channel) then
    return; -- who has marks need not look: past what was taken while some transaction is open the way is long
  end if;
  v_picked := carrick._pick(c, p_tenant, v_now, v_floor, v_rows, coalesce(p_max_bytes, c.batch_bytes), p_known, p_mark_ranks,
                            p_mark_seqs, v_gated);
  if v_picked = '{}' and p_known is not null then -- the marks were only a hint
    v_picked := carrick._pick(c, p_tenant, v_now, v_floor, v_rows, coalesce(p_max_bytes, c.batch_bytes), null, null, null, v_gated);
  end if;
  if v_grouped and v_picked <> '{}' then
    v_picked := carrick._hold_groups(p_channel, v_batch, v_picked);
  end if;
  if v_picked = '{}' then
    return;
  end if;
  if v_probe then
    perform carrick._start_probe(p_channel, v_until);
  end if;
  v_frozen := exists (select from carrick._at(v_picked[1]) w cross join lateral carrick._trouble(w.seq) t where t.frozen_batch is not null);
  return query
  with taken as (
    delete from carrick.work w where w.ctid = any(v_picked) returning w.*),
  leased as (
    insert into carrick.lease (batch_id, token, channel, owner, claimed_at, expires_at, units, troubled, grouped, bytes,
                               seqs, ids, dues)
    select v_batch, v_token, p_channel, p_owner, v_now, v_until,
           case when v_frozen then 1
                when c.mode = 'coalesce' then count(distinct t.group_key) + count(*) filter (where t.group_key is null)
                else count(*) end,
           bool_or(t.troubled), v_grouped, sum(t.size), array_agg(t.seq), array_agg(t.id), array_agg(t.due)
      from taken t)
  select r.id, t.seq, r.channel::text, r.tenant_id::text, r.principal::text, r.group_key::text, r.event_type::text,
         r.key::text, r.payload, r.headers, r.payload_size_bytes, r.priority, r.traceparent::text, r.occurred_at,
         r.created_at,
         coalesce(x.attempt_count, 0), coalesce(x.crash_count, 0),
         case when x.intent is null and v_gated and c.mode = 'coalesce' and not v_frozen
              then carrick._open_intent(t.channel, t.tenant_id, t.group_key) else x.intent end,
         v_token, v_until, v_batch, p_owner, v_now, t.due, v_probe
    from (select t.*, case when v_grouped and t.group_key is not null
                           then min(t.rank) over (partition by case when v_grouped then t.group_key end, case when v_grouped then t.tenant_id end)
                           else t.rank end as unit_rank
            from taken t) t
   cross join lateral carrick._record(t.id) r
    left join lateral carrick._trouble(case when t.troubled then t.seq end) x on true
   order by case when not v_frozen then t.unit_rank end, case when v_grouped and not v_frozen then t.tenant_id end,
            case when v_grouped and not v_frozen then t.group_key end, t.seq;
end $$;

create function carrick._check_limit(p_name text, p_value int, p_most int) returns void
  language plpgsql immutable as $$
begin
  if p_value not between 1 and p_most then
    perform carrick._fail('CK004', format('%s: %s is out of range', p_name, p_value), format('accepted: 1 to %s', p_most));
  end if;
end $$;

create function carrick.claim(
  channel text, owner text, max_rows int default null, max_bytes int default null, lease_seconds int default null,
  tenant text default null, token uuid default null, fresh_seconds numeric default null)
  returns setof carrick.claimed_entry
  language sql as $$
  select * from carrick._claim(channel, owner, max_rows, max_bytes, lease_seconds, tenant, token, null, null, null,
                               fresh_seconds::double precision)
$$;
