-- Picking: which entries a claim takes, by the channel's mode. It locks their rows (SKIP LOCKED, so claimers never wait for each other)
-- and returns where they lie, which cannot change while they are locked. Plans are pinned: generic, without sequential scans, by the ways
-- of 0001.

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
-- `cut`: the limit in bytes left some out. `grouped`: some belong to a group, whether they may go or not.
-- `p_mark_ranks` and `p_mark_seqs`: per tenant, where to start: where an earlier scan left off (a hint), or where fresh
-- entries begin; null starts at the oldest.
create function carrick._pick_stream(
  p_channel text, p_lanes text[], p_mark_ranks timestamptz[], p_mark_seqs bigint[], p_now timestamptz,
  p_horizon timestamptz, p_held_principals text[], p_rows int, p_bytes bigint, out picked tid[], out cut boolean, out grouped boolean)
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_more tid[];
  v_bytes bigint;
  v_grouped boolean;
  v_share int := greatest(1, ceil(p_rows::numeric / greatest(1, cardinality(p_lanes))));
begin
  picked := '{}';
  grouped := false;
  for pass in 1..2 loop -- the second pass gives what some tenants left over to the others
    select array_agg(x.at order by x.place, x.lane) filter (where f.fits), max(x.upto) filter (where f.fits), bool_or(x.upto > p_bytes),
           bool_or(x.is_grouped)
      into v_more, v_bytes, cut, v_grouped
      from (
        select w.at, lane.n as lane, w.place, w.is_grouped, row_number() over (order by w.place, lane.n) as n,
               sum(w.size) over (order by w.place, lane.n) as upto
          from unnest(p_lanes, p_mark_ranks, p_mark_seqs) with ordinality as lane(tenant, mark_rank, mark_seq, n)
         cross join lateral (
           select y.at, y.size, y.is_grouped, row_number() over (order by y.rank, y.seq) as place
             from (
               select z.ctid as at, z.seq, z.size, z.rank, z.group_key is not null as is_grouped from carrick.work z
                where z.channel = p_channel and z.tenant_id = lane.tenant
                  and (z.rank, z.seq) > (coalesce(lane.mark_rank, '-infinity'), coalesce(lane.mark_seq, 0))
                  and z.rank <= p_horizon and z.due <= p_now and not z.special
                  and (z.principal is null or z.principal <> all (p_held_principals))
                  and z.ctid <> all (picked)
                order by z.rank, z.seq
                limit v_share
                for update skip locked) y) w
        ) x
     cross join lateral (select x.upto <= p_bytes or (x.n = 1 and picked = '{}') as fits) f;
    exit when v_more is null;
    picked := picked || v_more;
    grouped := grouped or v_grouped;
    exit when cut or cardinality(p_lanes) = 1 or cardinality(picked) >= p_rows;
    p_bytes := p_bytes - v_bytes;
    exit when p_bytes <= 0;
    v_share := p_rows - cardinality(picked);
  end loop;
  picked := picked[1:p_rows];
end $$;

-- The first entries of groups, and entries without a group, that may go: in the order in which they should, and locked.
-- It looks at the oldest entries first. Where most of those wait behind the head of their group, it goes from group to
-- group instead, so that a long queue behind one head costs the others nothing. Not so for fresh entries, those from
-- `p_floor` on: all groups are too many to look at for a claim that passes over a backlog.
-- Entries without a group have no index of their own. Those behind the oldest are looked for only where all of the oldest
-- wait behind heads that wait themselves: else the oldest get fewer, and they are found when it is their turn.
-- `last`: the highest number among the oldest, where there are more: whoever follows the heads is mostly not beyond it.
create function carrick._heads(
  p_channel text, p_fair boolean, p_lanes text[], p_now timestamptz, p_floor timestamptz, p_horizon timestamptz,
  p_held_principals text[], p_share int, p_rows int, out heads tid[], out last bigint)
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
  v_looked int;
  v_look int;
  v_served bigint[];
  v_hidden text[];
begin
  foreach v_look in array array[p_share, 8 * p_share] loop
    select array_agg(h.at order by case when p_fair then h.place end, case when p_fair then h.lane end, h.rank, h.seq),
           coalesce(max(h.looked), 0), coalesce(array_agg(distinct h.lane), '{}'), max(h.last)
      into heads, v_looked, v_served, last
      from (
        select w.at, w.seq, w.rank, w.looked, w.last, lane.n as lane, row_number() over (partition by lane.n order by w.rank, w.seq) as place
          from unnest(p_lanes) with ordinality as lane(tenant, n)
         cross join lateral (
           -- of a group that is seen more than once, only the first can be its head
           select array_agg(y.at) filter (where y.group_key is null or y.nth = 1) as places, count(*) as looked, max(y.seq) as last
             from (select x.at, x.group_key, x.seq, row_number() over (partition by x.group_key order by x.seq) as nth
                     from (select w.ctid as at, w.group_key, w.seq from carrick.work w
                            where w.channel = p_channel and w.tenant_id = lane.tenant and w.rank >= p_floor and w.rank <= p_horizon
                              and w.due <= p_now and not w.special and (w.principal is null or w.principal <> all (p_held_principals))
                            order by w.rank, w.seq limit v_look) x) y) near
         cross join lateral (
           select z.ctid as at, z.seq, z.rank, near.looked, near.last from carrick.work z
            where z.ctid = any(near.places)
              and (z.group_key is null
                   or (not exists (select from carrick._earlier(p_channel, lane.tenant, z.group_key, z.seq))
                       and not exists (select from carrick._hold(p_channel, lane.tenant, z.group_key))))
            order by z.rank, z.seq
            limit p_share
            for update skip locked) w
        ) h;
    -- a tenant of whom nothing was found must not be passed over while more of it waits than was looked at
    v_hidden := array(select p_lanes[n] from generate_subscripts(p_lanes, 1) n where n <> all (v_served));
    if (4 * coalesce(cardinality(heads), 0) >= p_rows
        or (heads is not null and v_looked < v_look)
        or not carrick._many_wait(p_channel, p_lanes, p_floor, p_horizon, p_now, v_look))
       and not carrick._many_wait(p_channel, v_hidden, p_floor, p_horizon, p_now, v_look) then
      last := case when v_looked >= v_look then last end;
      return;
    end if;
  end loop;
  last := null;
  if p_floor > '-infinity' then
    return;
  end if;
  select array_agg(h.at order by case when p_fair then h.place end, case when p_fair then h.lane end, h.rank, h.seq)
    into heads
    from (
      select w.at, w.seq, w.rank, lane.n as lane, row_number() over (partition by lane.n order by w.rank, w.seq) as place
        from unnest(p_lanes) with ordinality as lane(tenant, n)
       cross join lateral (
         select z.ctid as at, z.seq, z.rank from carrick.work z
          where z.ctid = any(heads || carrick._group_heads(
                               p_channel, lane.tenant, p_now, p_held_principals,
                               lane.n <> all (v_served) and not carrick._some_held(p_channel, lane.tenant, p_now, v_look)))
            and (z.tenant_id = lane.tenant) is true -- so that no index passes for a better way
          order by z.rank, z.seq
          limit p_share
          for update skip locked) w
      ) h;
end $$;

-- Whether some tenant has that many entries due: then not all of them have been looked at.
create function carrick._many_wait(
  p_channel text, p_lanes text[], p_floor timestamptz, p_horizon timestamptz, p_now timestamptz, p_many int) returns boolean
  language sql stable as $$
  select exists (
    select from unnest(p_lanes) as lane(tenant)
     cross join lateral (
       select from carrick.work w
        where w.channel = p_channel and w.tenant_id = lane.tenant and w.rank >= p_floor and w.rank <= p_horizon and w.due <= p_now
        order by w.rank, w.seq offset p_many - 1 limit 1) at_least)
$$;

-- Whether a lease holds one of the groups among so many of the oldest entries of a tenant.
create function carrick._some_held(p_channel text, p_tenant text, p_now timestamptz, p_look int) returns boolean
  language sql stable as $$
  select exists (
    select from (select distinct x.group_key
                   from (select w.group_key from carrick.work w
                          where w.channel = p_channel and w.tenant_id = p_tenant and w.due <= p_now
                          order by w.rank, w.seq limit p_look) x) g
     where exists (select from carrick._hold(p_channel, p_tenant, g.group_key)))
$$;

-- Where the first entry of each group of a tenant lies that may go now, from group to group; where asked for, its entries without
-- a group, too.
create function carrick._group_heads(
  p_channel text, p_tenant text, p_now timestamptz, p_held_principals text[], p_loose boolean) returns tid[]
  language plpgsql stable
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
begin
  return array(
    with recursive head as (
      (select w.ctid as at, w.* from carrick.work w
        where w.channel = p_channel and w.tenant_id = p_tenant and w.group_key is not null
        order by w.group_key, w.seq limit 1)
      union all
      (select n.* from head h
        cross join lateral (
          select w.ctid as at, w.* from carrick.work w
           where w.channel = p_channel and w.tenant_id = p_tenant and w.group_key > h.group_key
           order by w.group_key, w.seq limit 1) n))
    select w.at from head w
     where w.due <= p_now and not w.special and (w.principal is null or w.principal <> all (p_held_principals))
       and not exists (select from carrick._hold(p_channel, p_tenant, w.group_key))
    union all
    select w.ctid from carrick.work w
     where p_loose and w.channel = p_channel and w.tenant_id = p_tenant and w.group_key is null and w.due <= p_now and not w.special
       and (w.principal is null or w.principal <> all (p_held_principals)));
end $$;

-- Whether the oldest entry of a tenant belongs to a group.
create function carrick._begins_grouped(p_channel text, p_tenant text, p_floor timestamptz) returns boolean
  language sql stable as $$
  select coalesce((select w.group_key is not null from carrick.work w
                    where w.channel = p_channel and w.tenant_id = p_tenant and w.rank >= p_floor order by w.rank, w.seq limit 1), false)
$$;

-- Entries of the given tenants in runs: per group the oldest and what may follow it. All earlier entries of a group are
-- delivered or dead, or earlier in this very batch (G5).
-- Tenants share the batch, or, where the channel is not fair, the oldest go first whoever's they are.
create function carrick._pick_ordered(
  p_channel text, p_fair boolean, p_lanes text[], p_now timestamptz, p_floor timestamptz, p_horizon timestamptz,
  p_held_principals text[], p_rows int, p_bytes bigint, out picked tid[], out cut boolean)
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
  v_share int := case when p_fair then ceil(p_rows::numeric / greatest(1, cardinality(p_lanes))) else p_rows end;
  v_heads tid[];
  v_run int;
  v_runs bigint[];
  v_last bigint;
  c_endless constant bigint := 9223372036854775807;
begin
  select h.heads, h.last into v_heads, v_last
    from carrick._heads(p_channel, p_fair, p_lanes, p_now, p_floor, p_horizon, p_held_principals, v_share, p_rows) h;
  if v_heads is null then
    picked := '{}';
    return;
  end if;
  v_heads := v_heads[1:p_rows];
  if cardinality(v_heads) = p_rows then -- no room for followers; the heads are locked
    select array_agg(x.at order by x.n) filter (where x.upto <= p_bytes or x.n = 1), bool_or(x.upto > p_bytes)
      into picked, cut
      from (select head.at, head.n, sum(h.size) over (order by head.n) as upto
              from unnest(v_heads) with ordinality as head(at, n) cross join lateral carrick._at(head.at) h) x;
    return;
  end if;
  v_run := least(p_rows, ceil(1.5 * p_rows / cardinality(v_heads))); -- half more than is needed: not all have as many
  v_last := coalesce(v_last, c_endless);
  loop
    -- followers, until the first that may not go yet; then the first entry of every run, the second of every run, ...
    -- up to the last that is as old as the heads, for a look into a long group reads a page of it; without that end only where they are too few
    select array_agg(x.seq order by x.place, x.head) filter (where x.n <= p_rows and (x.upto <= p_bytes or x.n = 1)),
           bool_or(x.upto > p_bytes)
      into v_runs, cut
      from (
        select r.seq, r.place, r.head, row_number() over (order by r.place, r.head) as n, sum(r.size) over (order by r.place, r.head) as upto
          from (
            select f.seq, f.size, head.n as head, row_number() over run as place, bool_and(f.ready) over run as ready
              from unnest(v_heads) with ordinality as head(at, n)
             cross join lateral carrick._at(head.at) h
             cross join lateral (
               select h.seq, h.size, true as ready
               union all
               select z.seq, z.size, z.due <= p_now and z.rank >= p_floor and not z.special
                                     and (z.principal is null or z.principal <> all (p_held_principals))
                 from (select w.* from carrick.work w
                        where w.channel = p_channel and w.tenant_id = h.tenant_id and w.group_key >= h.group_key
                          and (w.group_key, w.seq) <= (h.group_key, v_last) and w.seq > h.seq
                        order by w.group_key, w.seq limit v_run - 1) z) f
            window run as (partition by head.n order by f.seq)) r
         where r.ready
        ) x;
    exit when v_last = c_endless or cut or cardinality(v_runs) >= p_rows;
    v_last := c_endless;
  end loop;
  picked := carrick._lock_groups(v_runs);
end $$;

-- Whole waiting groups of one tenant that are due. `p_units` counts groups; an entry without a group is one by itself.
create function carrick._pick_coalesce(
  p_channel text, p_tenant text, p_now timestamptz, p_floor timestamptz, p_horizon timestamptz, p_held_principals text[],
  p_units int, p_bytes bigint) returns tid[]
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
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
                   where w.channel = p_channel and w.tenant_id = p_tenant and w.rank >= p_floor and w.rank <= p_horizon
                     and w.due <= p_now and not w.special and (w.principal is null or w.principal <> all (p_held_principals))
                     and (w.group_key is null
                          or not exists (select from carrick._earlier(p_channel, p_tenant, w.group_key, w.seq) e
                                          where e.due <= p_now and (e.principal is null or e.principal <> all (p_held_principals))))
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
-- of them are, or at the first one's longest wait; an entry without delay makes it due at once; a retry's backoff holds it, and so does
-- one that comes back apart. What stands behind a closed gate of its principal holds nobody.
-- Its plans are those of its caller: it is called for every row, and setting them costs more than the look.
create function carrick._due_group(
  w carrick.work, p_now timestamptz, p_held_principals text[], out due boolean, out size bigint, out seqs bigint[])
  language plpgsql stable as $$
begin
  if w.group_key is null then
    due := true;
    size := w.size;
    seqs := array[w.seq];
    return;
  end if;
  if exists (select from carrick._hold(w.channel, w.tenant_id, w.group_key))
     or exists (select from carrick._group(w.channel, w.tenant_id, w.group_key) e
                 where e.special and (e.principal is null or e.principal <> all (p_held_principals))) then
    due := false;
    return;
  end if;
  select not bool_or(e.troubled and e.due > p_now)
         and (bool_or(not e.delayed and e.due <= p_now) or max(e.due) <= p_now or coalesce(min(e.max_wait_at) <= p_now, false)),
         sum(e.size), array_agg(e.seq)
    into due, size, seqs
    from carrick._group(w.channel, w.tenant_id, w.group_key) e
   where e.principal is null or e.principal <> all (p_held_principals);
end $$;

-- Locks the picked rows. A group goes as a whole when somebody else has a row of it, for that one is claiming it, or when
-- one of its rows has been tried since it was picked.
create function carrick._lock_groups(p_picked bigint[]) returns tid[]
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_now timestamptz := carrick.clock();
  v_locked tid[];
begin
  if p_picked is null then
    return '{}';
  end if;
  v_locked := array(select w.ctid from carrick.work w
                     where w.ctid = any(carrick._places(p_picked)) and not w.special and not (w.troubled and w.due > v_now)
                       for update skip locked);
  if cardinality(v_locked) = cardinality(p_picked) then
    return v_locked;
  end if;
  return array(
    select x.at
      from (select p.at, l.at is not null as locked,
                   bool_and(l.at is not null or w.group_key is null) over (partition by w.tenant_id, w.group_key) as whole
              from unnest(carrick._places(p_picked)) as p(at)
              left join unnest(v_locked) as l(at) on l.at = p.at
             cross join lateral carrick._at(p.at) w) x
     where x.locked and x.whole);
end $$;

-- A channel that is not fair: the oldest entries whoever's they are.
create function carrick._pick_oldest(
  c carrick.channel, p_now timestamptz, p_floor timestamptz, p_horizon timestamptz, p_held_tenants text[], p_held_principals text[],
  p_rows int, p_bytes bigint) returns tid[]
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_lanes text[] := array(select l from unnest(carrick._lanes(c.name, null, 2147483647, null)) l
                           where l <> all (p_held_tenants));
  v_picked tid[];
begin
  if c.mode = 'ordered' then
    select x.picked into v_picked
      from carrick._pick_ordered(c.name, false, v_lanes, p_now, p_floor, p_horizon, p_held_principals, p_rows, p_bytes) x;
    return v_picked;
  end if;
  -- rows that others have locked must not count, so each tenant offers its oldest free ones
  select array_agg(x.at order by x.n) into v_picked
    from (
      select w.at, row_number() over (order by w.rank, w.seq) as n, sum(w.size) over (order by w.rank, w.seq) as upto
        from unnest(v_lanes) as lane(tenant)
       cross join lateral (
         select z.ctid as at, z.seq, z.rank, z.size from carrick.work z
          where z.channel = c.name and z.tenant_id = lane.tenant and z.rank >= p_floor and z.rank <= p_horizon
            and z.due <= p_now and not z.special and (z.principal is null or z.principal <> all (p_held_principals))
          order by z.rank, z.seq limit p_rows for update skip locked) w
      ) x
   where x.n <= p_rows and (x.upto <= p_bytes or x.n = 1);
  return coalesce(v_picked, '{}');
end $$;
