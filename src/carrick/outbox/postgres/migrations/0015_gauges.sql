-- stats at any depth: what is few is counted, what is many is estimated, and the last column says which. What it costs does not
-- grow with the tables; docs/decisions/0013-gauges.md has the figures and the other ways that were tried.

create table carrick.gauge_limit (
  one   boolean primary key default true check (one),
  exact int not null check (exact >= 0)
);
comment on table carrick.gauge_limit is 'How many waiting and how many dead entries stats counts one by one; 100,000 where no row says otherwise.';

-- Where part `i` of `n` of a range of sequence numbers begins. Parts differ in length, so that no regular pattern in the table keeps in step
-- with them.
create function carrick._cut(p_lo bigint, p_hi bigint, i bigint, n bigint) returns bigint
  language sql immutable as $$
  select least(p_hi, p_lo + floor((p_hi - p_lo) * ((i + (i * 618034 % 1000000) / 2000000.0::double precision) / n))::bigint)
$$;

-- Windows spread over a table by its sequence numbers: each stands for `weight` times the rows from `lo` to before `stop`, 32 at most. First the
-- whole range is cut into 100 parts. One with up to 16 rows is a window itself. The others are cut to where their rows are, and divided into
-- `p_parts` altogether, so that rows which lie close together in a wide range are told apart as well. In each a window lies somewhere, as
-- long as the first 16 rows of the part are: its length does not depend on the rows in it, so runs of rows and gaps are not favoured.
create function carrick._windows(p_table regclass, p_parts int) returns table (lo bigint, stop bigint, weight double precision)
  language plpgsql stable
  set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
  set enable_material = off set enable_sort = off set jit = off as $$
begin
  return query execute format($q$
    with span as materialized (
      select (select min(x.seq) from %1$s x) as lo, (select max(x.seq) + 1 from %1$s x) as hi),
    part as materialized (
      select p.*, (select x.seq from %1$s x where x.seq >= p.lo and x.seq < p.hi order by x.seq offset 16 limit 1) as stop
        from (select carrick._cut(s.lo, s.hi, i, 100) as lo, carrick._cut(s.lo, s.hi, i + 1, 100) as hi, s.lo as origin
                from span s cross join generate_series(0, 99) i) p
       where p.lo < p.hi),
    dense as materialized (
      select (select min(x.seq) from %1$s x where x.seq >= p.lo and x.seq < p.hi) as lo,
             (select max(x.seq) + 1 from %1$s x where x.seq >= p.lo and x.seq < p.hi) as hi,
             p.stop, %2$s / count(*) over () as parts, p.origin
        from part p where p.stop is not null),
    finer as materialized (
      select p.lo, p.hi, p.length,
             p.lo + floor(mod(mod(p.lo - p.origin, 1000003) * 618034, 1000000) / 1000000.0 * greatest(0, p.hi - p.lo - p.length))::bigint
               as start
        from (select carrick._cut(d.lo, d.hi, i, d.parts) as lo, carrick._cut(d.lo, d.hi, i + 1, d.parts) as hi, d.stop - d.lo as length, d.origin
                from dense d cross join generate_series(0, d.parts - 1) i) p
       where p.lo < p.hi),
    sized as materialized (
      select f.lo, f.hi, f.start,
             coalesce((select x.seq from %1$s x where x.seq >= f.start and x.seq < least(f.hi, f.start + f.length)
                        order by x.seq offset 32 limit 1), least(f.hi, f.start + f.length)) as stop
        from finer f)
    select p.lo, p.hi, 1::double precision from part p where p.stop is null
    union all
    select z.start, z.stop, (z.hi - z.lo)::double precision / (z.stop - z.start) from sized z
    $q$, p_table, p_parts);
end $$;

-- Every channel at a glance. The channels with the fewest waiting entries are counted, as many as have `exact` together; the others
-- are estimated by windows. Dead entries are counted up to `exact` for each channel, by their index. Plans are pinned as in 0003.
create function carrick._stats() returns table (
    channel text, pending_count bigint, held_count bigint, claimed_count bigint, dead_count bigint, backlog_bytes numeric,
    oldest_pending_age_seconds double precision, delivered_per_second double precision, last_success_at timestamptz,
    last_error_at timestamptz, approximate text[])
  language plpgsql stable
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
  set enable_material = off set enable_sort = off set jit = off as $$
#variable_conflict use_column
declare
  v_now timestamptz := carrick.clock();
  v_exact int := coalesce((select g.exact from carrick.gauge_limit g), 100000);
  v_deep boolean := (select max(w.seq) from carrick.work w) - (select min(w.seq) from carrick.work w) >= v_exact;
  v_gated boolean := exists (select from carrick.gate g where g.closed_until > v_now and g.scope <> '*');
begin
  return query
  with seen as materialized (
    select w.channel, sum(v.weight) as entries, sum(v.weight * w.size) as bytes, min(w.seq) as oldest,
           sum(v.weight) filter (where v_gated and carrick._is_held(w.channel, w.tenant_id, w.principal, v_now)) as held
      from carrick._windows('carrick.work', 400) v
     cross join lateral (select x.* from carrick.work x where x.seq >= v.lo and x.seq < v.stop order by x.seq limit 32) w
     where v_deep group by w.channel),
  chosen as materialized (
    select c.name, coalesce(sum(s.entries) over (order by s.entries nulls first, c.name), 0) <= v_exact as is_exact
      from carrick.channel c left join seen s on s.channel = c.name),
  counted as materialized (
    select c.name, x.*
      from chosen c
     cross join lateral (
       select count(*) as entries, sum(w.size) as bytes, min(w.seq) as oldest,
              count(*) filter (where v_gated and carrick._is_held(c.name, w.tenant_id, w.principal, v_now)) as held
         from (select y.* from carrick.work y where y.channel = c.name order by y.tenant_id, y.rank, y.seq limit 2147483647) w) x
     where c.is_exact),
  dead as materialized (
    select c.name, (select count(*) from (select from carrick.ended e where e.channel = c.name and e.state = 'dead'
                                           order by e.ended_at, e.seq limit v_exact + 1::bigint) x) as entries
      from carrick.channel c),
  dead_seen as materialized (
    select e.channel, sum(v.weight) as entries
      from carrick._windows('carrick.ended', 400) v
     cross join lateral (select x.* from carrick.ended x where x.seq >= v.lo and x.seq < v.stop order by x.seq limit 32) e
     where exists (select from dead d where d.entries > v_exact) and e.state = 'dead' group by e.channel),
  waiting as (
    select c.name, c.is_exact,
           case when c.is_exact then coalesce(x.entries, 0) else round(s.entries)::bigint end as entries,
           case when c.is_exact then coalesce(x.bytes, 0) else round(s.bytes)::bigint end as bytes,
           case when c.is_exact then coalesce(x.held, 0) else coalesce(round(s.held), 0)::bigint end as held,
           case when c.is_exact then x.oldest else s.oldest end as oldest
      from chosen c
      left join counted x on x.name = c.name
      left join seen s on s.channel = c.name)
  select w.name, w.entries,
         case when exists (select from carrick.gate g where g.channel = w.name and g.scope = '*' and g.closed_until > v_now)
              then w.entries else w.held end,
         l.entries, case when d.entries > v_exact then greatest(d.entries, round(a.entries)::bigint) else d.entries end,
         w.bytes + l.bytes,
         extract(epoch from v_now - (select r.created_at from unnest(carrick._places(array[w.oldest])) as p(at)
                                      cross join lateral carrick._at(p.at) o
                                      cross join lateral carrick._record(o.id) r))::double precision,
         case when r.deliveries < 10000 then r.deliveries / 60.0::double precision
              else r.deliveries / greatest(0.1, extract(epoch from v_now - r.oldest))::double precision end,
         (select max(e.ended_at) from carrick.ended e where e.channel = w.name and e.state = 'delivered'),
         greatest((select max(e.ended_at) from carrick.ended e where e.channel = w.name and e.state = 'dead'),
                  (select c.last_error_at from carrick.channel c where c.name = w.name)),
         case when w.is_exact then '{}'::text[] else '{pending_count,held_count,backlog_bytes,oldest_pending_age_seconds}' end
           || case when d.entries > v_exact then '{dead_count}'::text[] else '{}' end
    from waiting w
    join dead d on d.name = w.name
    left join dead_seen a on a.channel = w.name
   cross join lateral (select coalesce(sum(cardinality(x.seqs)), 0)::bigint as entries, coalesce(sum(x.bytes), 0) as bytes
                         from carrick.lease x where x.channel = w.name) l
   cross join lateral (select count(*) as deliveries, min(x.ended_at) as oldest
                         from (select e.ended_at from carrick.ended e
                                where e.channel = w.name and e.state = 'delivered' and e.ended_at > v_now - interval '1 minute'
                                order by e.ended_at desc limit 10000) x) r;
end $$;

-- Whether a gate of its tenant's or its principal's holds an entry.
create function carrick._is_held(p_channel text, p_tenant text, p_principal text, p_now timestamptz) returns boolean
  language sql stable as $$
  select exists (select from carrick.gate g where g.channel = p_channel and g.closed_until > p_now
                    and g.scope in ('tenant:' || p_tenant, 'principal:' || p_principal))
$$;

create view carrick.stats as
select s.channel collate "C" as channel, s.pending_count, s.held_count, s.claimed_count, s.dead_count, s.backlog_bytes,
       s.oldest_pending_age_seconds, s.delivered_per_second, s.last_success_at, s.last_error_at, s.approximate
  from carrick._stats() s;
comment on column carrick.stats.approximate is 'The columns that are estimates in this row.';
