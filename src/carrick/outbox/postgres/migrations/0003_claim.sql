-- claim: take due entries for a time. Picking chooses sequence numbers and locks their rows (SKIP LOCKED, so claimers
-- never wait for each other); taking moves them from `work` into one row of `lease`.
-- Plans are pinned (no sequential scans, no hash or merge joins): statistics of a queue that was empty a moment ago lie.

-- Tenants of a channel that have waiting entries, by name, at most `p_max`, going round once from the one after `p_after`
-- (null: from the first). `p_known` are tenants the caller knows of: they are listed unseen, only the gaps between them
-- are searched.
create function carrick._lanes(p_channel text, p_after text, p_max int, p_known text[]) returns text[]
  language plpgsql stable
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_lanes text[] := '{}';
  v_at text collate "C" := p_after;
  v_found text collate "C";
  v_known text collate "C";
  v_wrapped boolean := p_after is null;
begin
  while cardinality(v_lanes) < p_max loop
    if v_at is null then -- the empty name comes first of all
      select '' into v_found
       where '' = any(p_known) or exists (select from carrick.work w where w.channel = p_channel and w.tenant_id = '');
      v_at := '';
      if v_found is null then
        continue;
      end if;
    else
      v_known := (select min(k collate "C") from unnest(p_known) k where k collate "C" > v_at);
      if v_known is null then
        select w.tenant_id into v_found from carrick.work w
         where w.channel = p_channel and w.tenant_id > v_at order by w.tenant_id limit 1;
      else
        select w.tenant_id into v_found from carrick.work w
         where w.channel = p_channel and w.tenant_id > v_at and w.tenant_id < v_known order by w.tenant_id limit 1;
        v_found := coalesce(v_found, v_known);
      end if;
    end if;
    if v_wrapped and v_found > p_after collate "C" then
      exit;
    elsif v_found is not null then
      v_lanes := v_lanes || v_found::text;
      v_at := v_found;
    elsif v_wrapped then
      exit;
    else
      v_wrapped := true;
      v_at := null;
    end if;
  end loop;
  return v_lanes;
end $$;

-- Independent entries of the given tenants, each tenant its share, oldest rank first; up to the limits, and locked.
-- `cut`: the limit in bytes left some out.
-- `p_mark_ranks` and `p_mark_seqs`: per tenant, where an earlier scan left off (a hint; null starts at the oldest).
create function carrick._pick_stream(
  p_channel text, p_lanes text[], p_mark_ranks timestamptz[], p_mark_seqs bigint[], p_now timestamptz,
  p_horizon timestamptz, p_held_principals text[], p_rows int, p_bytes bigint, out picked bigint[], out cut boolean)
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  v_more bigint[];
  v_share int := greatest(1, ceil(p_rows::numeric / greatest(1, cardinality(p_lanes))));
begin
  picked := '{}';
  for pass in 1..2 loop -- the second pass gives what some tenants left over to the others
    select array_agg(x.seq order by x.place, x.lane) filter (where x.upto <= p_bytes or (x.n = 1 and picked = '{}')),
           bool_or(x.upto > p_bytes)
      into v_more, cut
      from (
        select w.seq, lane.n as lane, w.place, row_number() over (order by w.place, lane.n) as n,
               sum(w.size) over (order by w.place, lane.n) as upto
          from unnest(p_lanes, p_mark_ranks, p_mark_seqs) with ordinality as lane(tenant, mark_rank, mark_seq, n)
         cross join lateral (
           select y.seq, y.size, row_number() over (order by y.rank, y.seq) as place
             from (
               select z.seq, z.size, z.rank from carrick.work z
                where z.channel = p_channel and z.tenant_id = lane.tenant
                  and (z.rank, z.seq) > (coalesce(lane.mark_rank, '-infinity'), coalesce(lane.mark_seq, 0))
                  and z.rank <= p_horizon and z.due <= p_now and not z.special
                  and (z.principal is null or z.principal <> all (p_held_principals))
                  and z.seq <> all (picked)
                order by z.rank, z.seq
                limit v_share
                for update skip locked) y) w
        ) x;
    exit when v_more is null;
    picked := picked || v_more;
    exit when cut or cardinality(p_lanes) = 1 or cardinality(picked) >= p_rows;
    p_bytes := p_bytes - (select sum(w.size) from carrick.work w where w.seq = any(v_more));
    exit when p_bytes <= 0;
    v_share := p_rows - cardinality(picked);
  end loop;
  picked := picked[1:p_rows];
end $$;

-- Entries of the given tenants in runs: per group the oldest and what may follow it. All earlier entries of a group are
-- delivered or dead, or earlier in this very batch (G5).
-- Tenants share the batch, or, where the channel is not fair, the oldest go first whoever's they are.
create function carrick._pick_ordered(
  p_channel text, p_fair boolean, p_lanes text[], p_now timestamptz, p_horizon timestamptz, p_held_principals text[],
  p_rows int, p_bytes bigint, out picked bigint[], out cut boolean)
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  v_share int := case when p_fair then ceil(p_rows::numeric / greatest(1, cardinality(p_lanes))) else p_rows end;
  v_heads bigint[];
  v_run int;
begin
  select array_agg(h.seq order by case when p_fair then h.place end, case when p_fair then h.lane end, h.rank, h.seq)
    into v_heads
    from (
      select w.seq, w.rank, lane.n as lane, row_number() over (partition by lane.n order by w.rank, w.seq) as place
        from unnest(p_lanes) with ordinality as lane(tenant, n)
       cross join lateral (
         select z.seq, z.rank from carrick.work z
          where z.channel = p_channel and z.tenant_id = lane.tenant
            and z.rank <= p_horizon and z.due <= p_now and not z.special
            and (z.principal is null or z.principal <> all (p_held_principals))
            and (z.group_key is null
                 or (not exists (select from carrick.work e where e.channel = p_channel and e.tenant_id = lane.tenant
                                    and e.group_key = z.group_key and e.seq < z.seq)
                     and not exists (select from carrick.hold h where h.channel = p_channel
                                        and h.tenant_id = lane.tenant and h.group_key = z.group_key)))
          order by z.rank, z.seq
          limit v_share
          for update skip locked) w
      ) h;
  if v_heads is null then
    picked := '{}';
    return;
  end if;
  v_heads := v_heads[1:p_rows];
  v_run := least(p_rows, 4 * ceil(p_rows::numeric / cardinality(v_heads)))::int;
  -- followers, until the first that may not go yet; then the first entry of every run, the second of every run, ...
  select array_agg(x.seq order by x.place, x.head) filter (where x.n <= p_rows and (x.upto <= p_bytes or x.n = 1)),
         bool_or(x.upto > p_bytes)
    into picked, cut
    from (
      select r.*, row_number() over (order by r.place, r.head) as n, sum(r.size) over (order by r.place, r.head) as upto
        from (
          select f.seq, f.size, f.place, head.n as head,
                 bool_and(f.ready) over (partition by head.n order by f.place) as reachable
            from unnest(v_heads) with ordinality as head(seq, n)
            join carrick.work h on h.seq = head.seq
           cross join lateral (
             select h.seq, h.size, 1 as place, true as ready
             union all
             (select y.seq, y.size, 1 + row_number() over (order by y.seq)::int, y.ready
                from (select z.seq, z.size,
                             z.due <= p_now and not z.special
                             and (z.principal is null or z.principal <> all (p_held_principals)) as ready
                        from carrick.work z
                       where z.channel = p_channel and z.tenant_id = h.tenant_id and z.group_key = h.group_key
                         and z.seq > h.seq and v_run > 1
                       order by z.seq limit v_run - 1) y)) f
          ) r
       where r.reachable
      ) x;
  picked := carrick._lock_groups(picked);
end $$;

-- Whole waiting groups of one tenant that are due. `p_units` counts groups; an entry without a group is one by itself.
create function carrick._pick_coalesce(
  p_channel text, p_tenant text, p_now timestamptz, p_horizon timestamptz, p_held_principals text[],
  p_units int, p_bytes bigint) returns bigint[]
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  v_picked bigint[];
begin
  select array_agg(x.seq order by x.unit, x.seq) into v_picked
    from (
      select m.seq, u.unit, u.upto
        from (
          select row_number() over (order by z.rank, z.seq) as unit, sum(z.size) over (order by z.rank, z.seq) as upto, z.seqs
            from (
              select w.seq, w.rank, g.size, g.seqs
                from (
                  -- a group is seen through its first due entry
                  select w.* from carrick.work w
                   where w.channel = p_channel and w.tenant_id = p_tenant and w.rank <= p_horizon and w.due <= p_now
                     and not w.special and (w.principal is null or w.principal <> all (p_held_principals))
                     and (w.group_key is null
                          or not exists (select from carrick.work e where e.channel = p_channel and e.tenant_id = p_tenant
                                            and e.group_key = w.group_key and e.seq < w.seq and e.due <= p_now
                                            and (e.principal is null or e.principal <> all (p_held_principals))))
                   order by w.rank, w.seq offset 0
                  ) w
               cross join lateral carrick._due_group(w, p_now, p_held_principals) g
               where g.due
               order by w.rank, w.seq
               limit p_units
              ) z
          ) u
       cross join lateral unnest(u.seqs) as m(seq)
      ) x
   where x.unit = 1 or x.upto <= p_bytes;
  return carrick._lock_groups(v_picked);
end $$;

-- Whether the group of an entry may be folded now, and which entries it then has. Debounced entries make it due when all
-- of them are, or at the first one's longest wait; an entry without delay makes it due at once; a retry's backoff holds it.
create function carrick._due_group(
  w carrick.work, p_now timestamptz, p_held_principals text[], out due boolean, out size bigint, out seqs bigint[])
  language plpgsql stable
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  if w.group_key is null then
    due := true;
    size := w.size;
    seqs := array[w.seq];
    return;
  end if;
  if exists (select from carrick.hold h
              where h.channel = w.channel and h.tenant_id = w.tenant_id and h.group_key = w.group_key)
     or exists (select from carrick.work e
                 where e.channel = w.channel and e.tenant_id = w.tenant_id and e.group_key = w.group_key and e.special) then
    due := false;
    return;
  end if;
  select not bool_or(e.troubled and e.due > p_now)
         and (bool_or(not e.delayed and e.due <= p_now) or max(e.due) <= p_now or coalesce(min(e.max_wait_at) <= p_now, false)),
         sum(e.size), array_agg(e.seq order by e.seq)
    into due, size, seqs
    from carrick.work e
   where e.channel = w.channel and e.tenant_id = w.tenant_id and e.group_key = w.group_key
     and (e.principal is null or e.principal <> all (p_held_principals));
end $$;

-- Locks the picked rows. A group goes as a whole when somebody else has a row of it, for that one is claiming it, or when
-- one of its rows has been tried since it was picked.
create function carrick._lock_groups(p_picked bigint[]) returns bigint[]
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_now timestamptz := carrick.clock();
  v_locked bigint[];
begin
  if p_picked is null then
    return '{}';
  end if;
  v_locked := array(select w.seq from carrick.work w where w.seq = any(p_picked) for update skip locked);
  v_locked := array(select w.seq from carrick.work w
                     where w.seq = any(v_locked) and not w.special and not (w.troubled and w.due > v_now));
  if cardinality(v_locked) = cardinality(p_picked) then
    return p_picked;
  end if;
  return array(
    select p.seq from unnest(p_picked) with ordinality as p(seq, n)
      join carrick.work w on w.seq = p.seq
     where p.seq = any(v_locked)
       and not exists (select from unnest(p_picked) as q(seq) join carrick.work o on o.seq = q.seq
                        where q.seq <> all (v_locked) and o.tenant_id = w.tenant_id and o.group_key = w.group_key)
     order by p.n);
end $$;

-- Whether an entry that comes back apart may go now: due, behind no gate, its group free and, in order, it the oldest.
-- Members of its frozen batch do not stand in each other's way.
create function carrick._may_return(
  c carrick.channel, w carrick.work, p_tenant text, p_now timestamptz, p_held_tenants text[], p_held_principals text[],
  p_frozen uuid) returns boolean
  language plpgsql volatile
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  return w.due <= p_now and (p_tenant is null or w.tenant_id = p_tenant) and w.tenant_id <> all (p_held_tenants)
     and (w.principal is null or w.principal <> all (p_held_principals))
     and (c.mode = 'stream' or w.group_key is null
          or not exists (select from carrick.hold h where h.channel = c.name and h.tenant_id = w.tenant_id
                            and h.group_key = w.group_key))
     and (c.mode <> 'coalesce' or w.group_key is null or p_frozen is not null
          or not exists (select from carrick.work e join carrick.trouble o on o.seq = e.seq
                          where e.channel = c.name and e.tenant_id = w.tenant_id and e.group_key = w.group_key
                            and o.frozen_batch is not null))
     and (c.mode <> 'ordered' or w.group_key is null
          or not exists (select from carrick.work e where e.channel = c.name and e.tenant_id = w.tenant_id
                            and e.group_key = w.group_key and e.seq < w.seq
                            and not exists (select from carrick.trouble o where o.seq = e.seq and o.frozen_batch = p_frozen)));
end $$;

-- Entries that come back apart: a frozen batch whole and alone, or suspects of a crash in a batch no larger than their cap.
-- `p_turn`: the tenant whose turn it is (null: any); `p_tenant`: the only one the caller wants.
create function carrick._pick_special(
  c carrick.channel, p_turn text, p_tenant text, p_now timestamptz, p_held_tenants text[], p_held_principals text[],
  p_rows int, p_bytes bigint) returns bigint[]
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  s record;
  v_picked bigint[];
begin
  for s in
    select w as work, t.batch_cap, t.frozen_batch
      from carrick.work w join carrick.trouble t on t.seq = w.seq
     where w.channel = c.name and w.special and w.due <= p_now and (p_turn is null or w.tenant_id = p_turn)
       and carrick._may_return(c, w, p_tenant, p_now, p_held_tenants, p_held_principals, t.frozen_batch)
     order by w.due, w.seq
  loop
    v_picked := carrick._apart(c, s.work, s.batch_cap, s.frozen_batch, p_turn, p_tenant, p_now, p_held_tenants,
                               p_held_principals, p_rows, p_bytes);
    if v_picked <> '{}'
       and cardinality(array(select w.seq from carrick.work w where w.seq = any(v_picked) for update skip locked))
           = cardinality(v_picked)
       -- locked now: look again, another claimer may have tried them in between
       and v_picked = carrick._apart(c, s.work, s.batch_cap, s.frozen_batch, p_turn, p_tenant, p_now, p_held_tenants,
                                     p_held_principals, p_rows, p_bytes) then
      return v_picked;
    end if;
  end loop;
  return '{}';
end $$;

-- The entries of a frozen batch when every one of them may go.
create function carrick._frozen(
  c carrick.channel, p_frozen uuid, p_tenant text, p_now timestamptz, p_held_tenants text[], p_held_principals text[])
  returns bigint[]
  language plpgsql volatile
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_picked bigint[];
  v_may boolean;
begin
  select array_agg(w.seq order by w.seq),
         bool_and(carrick._may_return(c, w, p_tenant, p_now, p_held_tenants, p_held_principals, p_frozen))
    into v_picked, v_may
    from carrick.trouble t join carrick.work w on w.seq = t.seq
   where t.frozen_batch = p_frozen;
  return case when v_may then v_picked else '{}' end;
end $$;

-- Suspects with the same cap as the given one, at most as many as the cap and the limits allow. A coalesced group is one.
create function carrick._suspects(
  c carrick.channel, p_first carrick.work, p_cap int, p_tenant text, p_now timestamptz, p_held_tenants text[],
  p_held_principals text[], p_rows int, p_bytes bigint) returns bigint[]
  language plpgsql volatile
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_tenant text := case when c.one_tenant or c.mode = 'coalesce' then p_first.tenant_id else p_tenant end;
  v_picked bigint[];
begin
  select array_agg(m.seq order by u.n, m.seq) into v_picked
    from (
      select row_number() over (order by f.due, f.seq) as n, sum(f.size) over (order by f.due, f.seq) as upto, f.*
        from (
          select w.due, w.seq, g.size, g.seqs
            from carrick.work w join carrick.trouble t on t.seq = w.seq
           cross join lateral (
             select case when c.mode = 'coalesce' and w.group_key is not null
                         then array(select e.seq from carrick.work e
                                     where e.channel = c.name and e.tenant_id = w.tenant_id and e.group_key = w.group_key
                                       and (e.principal is null or e.principal <> all (p_held_principals)))
                         else array[w.seq] end as seqs) s
           cross join lateral (
             select s.seqs, (select sum(e.size) from carrick.work e where e.seq = any(s.seqs)) as size,
                    (select min(e.seq) from carrick.work e join carrick.trouble o on o.seq = e.seq
                      where e.seq = any(s.seqs) and e.special and o.frozen_batch is null) as first) g
           where w.channel = c.name and w.special and w.due <= p_now and t.frozen_batch is null and t.batch_cap = p_cap
             and w.seq = g.first
             and carrick._may_return(c, w, v_tenant, p_now, p_held_tenants, p_held_principals, null)
           order by w.due, w.seq limit least(p_cap, p_rows)
          ) f
      ) u
   cross join lateral unnest(u.seqs) as m(seq)
   where u.n = 1 or u.upto <= p_bytes;
  return coalesce(v_picked, '{}');
end $$;

-- What comes back apart with the given entry: its frozen batch, or suspects like it.
create function carrick._apart(
  c carrick.channel, p_first carrick.work, p_cap int, p_frozen uuid, p_turn text, p_tenant text, p_now timestamptz,
  p_held_tenants text[], p_held_principals text[], p_rows int, p_bytes bigint) returns bigint[]
  language sql volatile as $$
  select case when p_frozen is not null
              then carrick._frozen(c, p_frozen, p_tenant, p_now, p_held_tenants, p_held_principals)
              else carrick._suspects(c, p_first, p_cap, coalesce(p_turn, p_tenant), p_now, p_held_tenants,
                                     p_held_principals, p_rows, p_bytes) end
$$;

-- Keeps other leases off the groups of the picked entries (G4); entries whose group another lease got first drop out.
create function carrick._hold_groups(p_channel text, p_batch uuid, p_picked bigint[]) returns bigint[]
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_wanted int;
  v_got int;
begin
  with wanted as materialized (
    select distinct w.tenant_id, w.group_key from carrick.work w
     where w.seq = any(p_picked) and w.group_key is not null order by 1, 2),
  got as (
    insert into carrick.hold (channel, tenant_id, group_key, batch_id)
    select p_channel, tenant_id, group_key, p_batch from wanted
    on conflict do nothing returning 1)
  select (select count(*) from wanted), (select count(*) from got) into v_wanted, v_got;
  if v_got = v_wanted then
    return p_picked;
  end if;
  return array(
    select p.seq from unnest(p_picked) with ordinality as p(seq, n)
      join carrick.work w on w.seq = p.seq
     where w.group_key is null
        or exists (select from carrick.hold h where h.channel = p_channel and h.tenant_id = w.tenant_id
                      and h.group_key = w.group_key and h.batch_id = p_batch)
     order by p.n);
end $$;

-- Chooses what to claim: entries that come back apart first, else by the channel's mode, tenants in turn.
create function carrick._pick(
  c carrick.channel, p_tenant text, p_now timestamptz, p_rows int, p_bytes bigint,
  p_known text[], p_mark_ranks timestamptz[], p_mark_seqs bigint[]) returns bigint[]
  language plpgsql
  set plan_cache_mode = force_generic_plan as $$
declare
  v_held_tenants text[] := array(select substr(g.scope, 8) from carrick.gate g
                                  where g.channel = c.name and g.scope like 'tenant:%' and g.closed_until > p_now);
  v_held_principals text[] := array(select substr(g.scope, 11) from carrick.gate g
                                     where g.channel = c.name and g.scope like 'principal:%' and g.closed_until > p_now);
  v_horizon timestamptz := p_now;
  v_one boolean := c.one_tenant or c.mode = 'coalesce';
  v_apart text[] := array(select distinct w.tenant_id from carrick.work w
                           where w.channel = c.name and w.special and w.due <= p_now);
  v_lanes text[];
  v_start text;
  v_chunk int;
  v_cut boolean;
  v_picked bigint[] := '{}';
begin
  if exists (select from carrick.work w where w.channel = c.name and w.priority <> 0) then
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
      return carrick._pick_oldest(c, p_now, v_horizon, v_held_tenants, v_held_principals, p_rows, p_bytes);
    end if;
    select x.picked into v_picked
      from carrick._pick_lanes(c, array[p_tenant], p_known, p_mark_ranks, p_mark_seqs, p_now, v_horizon,
                               v_held_principals, p_rows, p_bytes) x;
    return v_picked;
  end if;
  select t.tenant_id into v_start from carrick.turn t where t.channel = c.name;
  v_lanes := carrick._lanes(c.name, v_start, p_rows + 1, p_known);
  while v_lanes <> '{}' loop
    if v_lanes[1] = any (v_apart) then
      v_chunk := 1;
      v_picked := carrick._pick_special(c, v_lanes[1], null, p_now, v_held_tenants, v_held_principals, p_rows, p_bytes);
      v_apart := array_remove(v_apart, v_lanes[1]);
      continue when v_picked = '{}';
    else
      v_chunk := carrick._chunk(v_lanes, v_apart, case when v_one then 1 else p_rows end);
      select x.* into v_picked, v_cut from carrick._pick_lanes(
        c, array(select l from unnest(v_lanes[1:v_chunk]) l where l <> all (v_held_tenants)), p_known, p_mark_ranks,
        p_mark_seqs, p_now, v_horizon, v_held_principals, p_rows, p_bytes) x;
      if v_cut and v_chunk > 1 and v_picked <> '{}' then -- not all of them were served
        v_chunk := (select max(array_position(v_lanes, w.tenant_id::text)) from carrick.work w where w.seq = any(v_picked));
      end if;
    end if;
    exit when v_picked <> '{}';
    v_lanes := v_lanes[v_chunk + 1:] || carrick._lanes_beyond(c.name, v_start, v_lanes[cardinality(v_lanes)], p_rows, p_known);
  end loop;
  if v_picked <> '{}' and cardinality(v_lanes) > v_chunk then -- somebody else waits: they are next
    update carrick.turn t set tenant_id = v_lanes[v_chunk]
     where t.tenant_id is distinct from v_lanes[v_chunk]
       and t.ctid = (select x.ctid from carrick.turn x where x.channel = c.name for update skip locked);
  end if;
  return v_picked;
end $$;

-- How many tenants, from the first on, may share one batch: none of them has entries that must come apart.
create function carrick._chunk(p_lanes text[], p_apart text[], p_most int) returns int
  language sql immutable as $$
  select least(p_most, coalesce(min(l.n) - 1, cardinality(p_lanes)))::int
    from unnest(p_lanes) with ordinality as l(tenant, n) where l.tenant = any (p_apart)
$$;

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
  p_horizon timestamptz, p_held_principals text[], p_rows int, p_bytes bigint, out picked bigint[], out cut boolean)
  language plpgsql
  set plan_cache_mode = force_generic_plan as $$
begin
  if p_lanes = '{}' then
    picked := '{}';
    return;
  end if;
  case c.mode
    when 'stream' then
      select x.* into picked, cut from carrick._pick_stream(
        c.name, p_lanes,
        array(select p_mark_ranks[array_position(p_known, l.tenant)] from unnest(p_lanes) with ordinality l(tenant, n) order by n),
        array(select p_mark_seqs[array_position(p_known, l.tenant)] from unnest(p_lanes) with ordinality l(tenant, n) order by n),
        p_now, p_horizon, p_held_principals, p_rows, p_bytes) x;
    when 'ordered' then
      select x.* into picked, cut
        from carrick._pick_ordered(c.name, true, p_lanes, p_now, p_horizon, p_held_principals, p_rows, p_bytes) x;
    when 'coalesce' then
      picked := carrick._pick_coalesce(c.name, p_lanes[1], p_now, p_horizon, p_held_principals, p_rows, p_bytes);
  end case;
end $$;

-- A channel that is not fair: the oldest entries whoever's they are.
create function carrick._pick_oldest(
  c carrick.channel, p_now timestamptz, p_horizon timestamptz, p_held_tenants text[], p_held_principals text[],
  p_rows int, p_bytes bigint) returns bigint[]
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  v_lanes text[] := array(select l from unnest(carrick._lanes(c.name, null, 2147483647, null)) l
                           where l <> all (p_held_tenants));
  v_tries bigint[];
  v_picked bigint[];
begin
  if c.mode = 'ordered' then
    select x.picked into v_picked
      from carrick._pick_ordered(c.name, false, v_lanes, p_now, p_horizon, p_held_principals, p_rows, p_bytes) x;
    return v_picked;
  end if;
  -- rows that others have locked must not count, so each tenant offers its oldest free ones
  v_tries := array(
    select w.seq
      from unnest(v_lanes) as lane(tenant)
     cross join lateral (
       select z.seq, z.rank from carrick.work z
        where z.channel = c.name and z.tenant_id = lane.tenant and z.rank <= p_horizon and z.due <= p_now
          and not z.special and (z.principal is null or z.principal <> all (p_held_principals))
        order by z.rank, z.seq limit p_rows for update skip locked) w
     order by w.rank, w.seq limit p_rows);
  select array_agg(x.seq order by x.n) into v_picked
    from (select t.seq, t.n, sum(w.size) over (order by t.n) as upto
            from unnest(v_tries) with ordinality as t(seq, n) join carrick.work w on w.seq = t.seq) x
   where x.upto <= p_bytes or x.n = 1;
  return coalesce(v_picked, '{}');
end $$;

create type carrick.claimed_entry as (
  id uuid, seq bigint, channel text, tenant_id text, principal text, group_key text, event_type text, key text,
  payload json, headers jsonb, payload_size_bytes int, priority int, traceparent text, occurred_at timestamptz,
  created_at timestamptz, attempt_count int, crash_count int, intent jsonb,
  lease_token uuid, lease_expires_at timestamptz, batch_id uuid, claimed_by text, claimed_at timestamptz,
  next_attempt_at timestamptz);

create function carrick._claim(
  p_channel text, p_owner text, p_max_rows int, p_max_bytes int, p_lease_seconds int, p_tenant text, p_token uuid,
  p_known text[], p_mark_ranks timestamptz[], p_mark_seqs bigint[]) returns setof carrick.claimed_entry
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  c carrick.channel := carrick._known_channel(p_channel);
  v_now timestamptz := carrick.clock();
  v_token uuid := coalesce(p_token, gen_random_uuid());
  v_batch uuid := carrick.uuid7();
  v_until timestamptz;
  v_grouped boolean := c.mode <> 'stream';
  v_frozen boolean;
  v_picked bigint[];
begin
  perform carrick._check_limit('max_rows', p_max_rows, 10000), carrick._check_limit('max_bytes', p_max_bytes, 1073741824),
          carrick._check_limit('lease_seconds', p_lease_seconds, 86400);
  if p_owner is null or p_owner = '' then
    perform carrick._fail('CK004', 'owner: must not be empty', 'accepted: a name of the worker that claims');
  end if;
  v_until := v_now + coalesce(p_lease_seconds, c.lease_seconds) * interval '1 second';
  if exists (select from carrick.lease l where l.channel = p_channel and l.expires_at <= v_now) then
    perform carrick._return_expired(p_channel, v_now);
  end if;
  if exists (select from carrick.gate g where g.channel = p_channel and g.scope = '*' and g.closed_until > v_now) then
    return;
  end if;
  v_picked := carrick._pick(c, p_tenant, v_now, coalesce(p_max_rows, c.batch_rows), coalesce(p_max_bytes, c.batch_bytes),
                            p_known, p_mark_ranks, p_mark_seqs);
  if v_grouped and v_picked <> '{}' then
    v_picked := carrick._hold_groups(p_channel, v_batch, v_picked);
  end if;
  if v_picked = '{}' then
    return;
  end if;
  v_frozen := exists (select from carrick.trouble t where t.seq = v_picked[1] and t.frozen_batch is not null);
  return query
  with taken as (
    delete from carrick.work w where w.seq = any(v_picked) returning w.*),
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
         coalesce(x.attempt_count, 0), coalesce(x.crash_count, 0), x.intent,
         v_token, v_until, v_batch, p_owner, v_now, t.due
    from (select t.*, min(t.rank) over (partition by case when v_grouped then t.tenant_id end,
                                                     case when v_grouped then coalesce(t.group_key, t.id::text) end) as unit_rank
            from taken t) t
    join carrick.record r on r.id = t.id
    left join carrick.trouble x on t.troubled and x.seq = t.seq
   order by case when v_frozen then null when v_grouped then t.unit_rank else t.rank end, case when v_grouped then t.tenant_id end,
            case when v_grouped then t.group_key end, t.seq;
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
  tenant text default null, token uuid default null) returns setof carrick.claimed_entry
  language sql as $$
  select * from carrick._claim(channel, owner, max_rows, max_bytes, lease_seconds, tenant, token, null, null, null)
$$;
