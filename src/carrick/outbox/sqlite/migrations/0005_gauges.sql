-- stats at any depth: what is few is counted, what is many is estimated, and the last column says which. What it costs does not
-- grow with the tables; docs/decisions/0013-gauges.md has the figures and the other ways that were tried.

-- How many waiting and how many dead entries stats counts one by one; 100,000 where no row says otherwise.
create table carrick_gauge_limit (
  one   integer primary key check (one = 1),
  exact integer not null check (exact >= 0)
) strict;

-- Windows are spread over a table by its sequence numbers: each stands for `weight` times the rows from `lo` to before `stop`, 32 at most. First
-- the whole range is cut into 100 parts. One with up to 16 rows is a window itself. The others are cut to where their rows are, and divided into
-- 400 altogether, so that rows which lie close together in a wide range are told apart as well. In each a window lies somewhere, as long as the
-- first 16 rows of the part are: its length does not depend on the rows in it, so runs of rows and gaps are not favoured. Parts differ in
-- length, so that no regular pattern in the table keeps in step with them.
-- The channels with the fewest waiting entries are counted, as many as have `exact` together; the others are estimated by windows. Dead
-- entries are counted up to `exact` for each channel, by their index.
create view carrick_stats as
with recursive
bound (now, exact) as materialized (
  select k.now, coalesce((select g.exact from carrick_gauge_limit as g), 100000) from carrick_clock as k),
gated (channel, whole) as materialized (
  select g.channel, max(g.scope = '*') from carrick_gate as g where g.closed_until > (select now from bound) group by g.channel),
dead (channel, entries) as materialized (
  select c.name, (select count(*) from (select 1 from carrick_ended as e where e.channel = c.name and e.state = 'dead'
                                         limit (select exact + 1 from bound)))
    from carrick_channel as c),
span (place, lo, hi) as materialized (
  select 'work', (select min(seq) from carrick_work), (select max(seq) + 1 from carrick_work)
   where (select max(seq) from carrick_work) - (select min(seq) from carrick_work) >= (select exact from bound)
  union all
  select 'ended', (select min(seq) from carrick_ended), (select max(seq) + 1 from carrick_ended)
   where exists (select 1 from dead where entries > (select exact from bound))),
step (i, at, next) as materialized (
  select 0, 0.0, 1.309017
  union all
  select i + 1, next, i + 2 + ((i + 2) * 618034 % 1000000) / 2000000.0 from step where i < 399),
part (place, lo, hi, stop) as materialized (
  select p.place, p.lo, p.hi,
         case p.place
           when 'work' then (select seq from carrick_work where seq >= p.lo and seq < p.hi order by seq limit 1 offset 16)
           else (select seq from carrick_ended where seq >= p.lo and seq < p.hi order by seq limit 1 offset 16)
         end
    from (select s.place, min(s.hi, s.lo + cast((s.hi - s.lo) * (a.at / 100) as integer)) as lo,
                 min(s.hi, s.lo + cast((s.hi - s.lo) * (a.next / 100) as integer)) as hi
            from span as s cross join step as a on a.i < 100) as p
   where p.lo < p.hi),
dense (place, lo, hi, stop, parts, origin) as materialized (
  select p.place,
         case p.place when 'work' then (select min(seq) from carrick_work where seq >= p.lo and seq < p.hi)
                      else (select min(seq) from carrick_ended where seq >= p.lo and seq < p.hi) end,
         case p.place when 'work' then (select max(seq) + 1 from carrick_work where seq >= p.lo and seq < p.hi)
                      else (select max(seq) + 1 from carrick_ended where seq >= p.lo and seq < p.hi) end,
         p.stop, 400 / count(*) over (partition by p.place), s.lo
    from part as p join span as s on s.place = p.place where p.stop is not null),
finer (place, lo, hi, start, upto) as materialized (
  select p.place, p.lo, p.hi, p.start, min(p.hi, p.start + p.length)
    from (select c.*, c.lo + cast(((c.lo - c.origin) % 1000003 * 618034 % 1000000) / 1000000.0 * max(0, c.hi - c.lo - c.length)
                                  as integer) as start
            from (select d.place, min(d.hi, d.lo + cast((d.hi - d.lo) * (a.at / d.parts) as integer)) as lo,
                         min(d.hi, d.lo + cast((d.hi - d.lo) * (a.next / d.parts) as integer)) as hi, d.stop - d.lo as length, d.origin
                    from step as a cross join dense as d on a.i < d.parts) as c) as p
   where p.lo < p.hi),
sized (place, lo, hi, start, stop) as materialized (
  select f.place, f.lo, f.hi, f.start,
         coalesce(case f.place
                    when 'work' then (select seq from carrick_work where seq >= f.start and seq < f.upto order by seq limit 1 offset 32)
                    else (select seq from carrick_ended where seq >= f.start and seq < f.upto order by seq limit 1 offset 32)
                  end, f.upto)
    from finer as f),
sample (place, lo, stop, weight) as materialized (
  select place, lo, hi, 1.0 from part where stop is null
  union all
  select place, start, stop, 1.0 * (hi - lo) / (stop - start) from sized),
seen (channel, entries, bytes, held, oldest) as materialized (
  select w.channel, sum(v.weight), sum(v.weight * w.size),
         sum(case when g.channel is null then 0
                  when g.whole or exists (select 1 from carrick_gate as x
                                           where x.channel = g.channel and x.closed_until > (select now from bound)
                                             and x.scope in ('tenant:' || w.tenant_id, 'principal:' || w.principal))
                  then v.weight else 0 end), min(w.seq)
    from sample as v cross join carrick_work as w not indexed on w.seq >= v.lo and w.seq < v.stop and w.batch_id is null
    left join gated as g on g.channel = w.channel
   where v.place = 'work' group by w.channel),
chosen (channel, is_exact) as materialized (
  select c.name, coalesce(sum(s.entries) over (order by s.entries nulls first, c.name), 0) <= (select exact from bound)
    from carrick_channel as c left join seen as s on s.channel = c.name),
counted (channel, entries, bytes, held, oldest) as materialized (
  select k.name, count(*), sum(w.size),
         sum(case when g.channel is null then 0
                  else g.whole or exists (select 1 from carrick_gate as x
                                           where x.channel = g.channel and x.closed_until > (select now from bound)
                                             and x.scope in ('tenant:' || w.tenant_id, 'principal:' || w.principal)) end),
         min(w.seq)
    from carrick_channel as k -- in the order of its key, so that nothing is sorted
   cross join chosen as c on c.channel = k.name and c.is_exact
   cross join carrick_work as w indexed by carrick_work_rank on w.channel = k.name and w.batch_id is null
    left join gated as g on g.channel = k.name
   group by k.name),
dead_seen (channel, entries) as materialized (
  select e.channel, sum(v.weight)
    from sample as v cross join carrick_ended as e not indexed on e.seq >= v.lo and e.seq < v.stop and e.state = 'dead'
   where v.place = 'ended' group by e.channel),
claimed (channel, entries, bytes) as materialized (
  select l.channel, count(*), sum(w.size)
    from carrick_lease as l cross join carrick_work as w on w.batch_id = l.batch_id group by l.channel),
told as (
  select c.channel,
         case when c.is_exact then coalesce(x.entries, 0) else cast(round(s.entries) as integer) end as pending_count,
         case when c.is_exact then coalesce(x.held, 0) else cast(round(s.held) as integer) end as held_count,
         coalesce(l.entries, 0) as claimed_count,
         case when d.entries > (select exact from bound) then max(d.entries, cast(round(coalesce(a.entries, 0)) as integer))
              else d.entries end as dead_count,
         case when c.is_exact then coalesce(x.bytes, 0) else cast(round(s.bytes) as integer) end + coalesce(l.bytes, 0)
           as backlog_bytes,
         ((select now from bound) - (select r.created_at from carrick_record as r
                                      where r.seq = case when c.is_exact then x.oldest else s.oldest end)) / 1000000.0
           as oldest_pending_age_seconds,
         (select case when count(*) < 10000 then count(*) / 60.0
                      else count(*) / max(0.1, ((select now from bound) - min(x.ended_at)) / 1000000.0) end
            from (select e.ended_at from carrick_ended as e
                   where e.channel = c.channel and e.state = 'delivered' and e.ended_at > (select now from bound) - 60000000
                   order by e.ended_at desc limit 10000) as x) as delivered_per_second,
         (select max(e.ended_at) from carrick_ended as e where e.channel = c.channel and e.state = 'delivered') as last_success_at,
         nullif(max(coalesce((select max(e.ended_at) from carrick_ended as e where e.channel = c.channel and e.state = 'dead'), 0),
                    coalesce((select k.last_error_at from carrick_channel as k where k.name = c.channel), 0)), 0) as last_error_at,
         trim(case when c.is_exact then '' else 'pending_count,held_count,backlog_bytes,oldest_pending_age_seconds' end
              || case when d.entries > (select exact from bound) then ',dead_count' else '' end, ',') as approximate
    from chosen as c
    join dead as d on d.channel = c.channel
    left join counted as x on x.channel = c.channel
    left join seen as s on s.channel = c.channel
    left join dead_seen as a on a.channel = c.channel
    left join claimed as l on l.channel = c.channel)
select channel, pending_count, held_count, claimed_count, dead_count, backlog_bytes, oldest_pending_age_seconds, delivered_per_second,
       strftime('%Y-%m-%dT%H:%M:%S', last_success_at / 1000000, 'unixepoch') || printf('.%06dZ', last_success_at % 1000000)
         as last_success_at,
       strftime('%Y-%m-%dT%H:%M:%S', last_error_at / 1000000, 'unixepoch') || printf('.%06dZ', last_error_at % 1000000)
         as last_error_at,
       approximate
  from told;
