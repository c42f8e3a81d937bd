-- Sending dead entries round again, and removing ended entries: those past their retention, or dead ones by name.

-- Those of the given entries that are dead, for that reason if one is given, the longest dead first.
create function carrick._dead_among(p_channel text, p_ids uuid[], p_reason text, p_max int) returns bigint[]
  language plpgsql stable
  set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
begin
  return array(
    select e.seq from (select distinct u.id from unnest(p_ids) as u(id)) i
     cross join lateral carrick._record(i.id) r
     cross join lateral carrick._ended(r.seq) e
     where e.channel = p_channel and e.state = 'dead' and (p_reason is null or e.dlq_reason = p_reason)
     order by e.ended_at, e.seq limit p_max);
end $$;

-- Locks dead entries; those that somebody else has, or has sent round since they were found, drop out.
create function carrick._lock_dead(p_seqs bigint[]) returns bigint[]
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
begin
  return array(
    select x.seq
      from (select e.seq, e.state, e.ended_at from carrick.ended e where e.seq = any(p_seqs) offset 0 for update skip locked) x
     where x.state = 'dead'
     order by x.ended_at, x.seq);
end $$;

create function carrick.redrive(
  channel text, ids uuid[] default null, reason text default null, max_rows int default null,
  spread_seconds numeric default 60, dry_run boolean default false) returns int
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_channel alias for channel;
  v_ids alias for ids;
  v_reason alias for reason;
  v_max alias for max_rows;
  v_spread alias for spread_seconds;
  c carrick.channel := carrick._known_channel(v_channel);
  v_now timestamptz := carrick.clock();
  v_seqs bigint[];
  v_bytes bigint;
begin
  if v_max < 1 then
    perform carrick._fail('CK004', format('max_rows: %s is out of range', v_max), 'accepted: 1 or more');
  end if;
  if v_spread is null or v_spread < 0 or v_spread > 31622400 then
    perform carrick._fail('CK004', format('spread_seconds: %s is out of range', coalesce(v_spread::text, 'null')),
                          'accepted: 0 to 31622400');
  end if;
  if v_ids is null then
    v_seqs := array(
      select e.seq from carrick.ended e
       where e.channel = v_channel and e.state = 'dead' and (v_reason is null or e.dlq_reason = v_reason)
       order by e.ended_at, e.seq limit v_max for update skip locked);
  else
    v_seqs := carrick._lock_dead(carrick._dead_among(v_channel, v_ids, v_reason, v_max));
  end if;
  if dry_run or v_seqs = '{}' then
    return cardinality(v_seqs);
  end if;
  with again as (
    delete from carrick.ended e where e.seq = any(v_seqs) returning e.seq, e.id, e.ended_at),
  spread as (
    select a.id, a.seq,
           v_now + (row_number() over (order by a.ended_at, a.seq) - 1) * (v_spread / cardinality(v_seqs)) * interval '1 second' as due
      from again a),
  back as (
    insert into carrick.work (seq, id, channel, tenant_id, principal, group_key, size, priority, due, rank)
    select s.seq, s.id, r.channel, r.tenant_id, r.principal, r.group_key, r.payload_size_bytes, r.priority, s.due,
           carrick._rank(s.due, r.priority)
      from spread s cross join lateral carrick._record(s.id) r
    returning size)
  select sum(b.size) into v_bytes from back b;
  if c.max_backlog_bytes is not null then
    perform carrick._count_backlog(v_channel, v_bytes);
  end if;
  perform carrick._wake(v_channel);
  return cardinality(v_seqs);
end $$;

-- Removes ended entries for good; keys that the channel remembers outlive them.
create function carrick._remove(c carrick.channel, p_seqs bigint[]) returns void
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_ids uuid[] := array(select e.id from carrick.ended e where e.seq = any(p_seqs));
begin
  if c.remember_keys_days > 0 then
    insert into carrick.remembered_key (channel, tenant_id, key, id, state, content_hash, forget_at)
    select r.channel, r.tenant_id, r.key, r.id, e.state,
           carrick._content_hash(r.event_type, r.payload::text, r.group_key, r.principal),
           carrick.clock() + c.remember_keys_days * interval '1 day'
      from unnest(p_seqs) as p(seq) cross join lateral carrick._ended(p.seq) e cross join lateral carrick._record(e.id) r
     where r.key is not null
    on conflict (channel, tenant_id, key) do nothing;
  end if;
  delete from carrick.ended e where e.seq = any(p_seqs);
  delete from carrick.record r where r.id = any(v_ids);
end $$;

create function carrick.discard(channel text, ids uuid[]) returns int
  language plpgsql as $$
declare
  v_channel alias for channel;
  v_ids alias for ids;
  c carrick.channel := carrick._known_channel(v_channel);
  v_seqs bigint[];
begin
  v_seqs := carrick._lock_dead(carrick._dead_among(v_channel, v_ids, null, null));
  if v_seqs <> '{}' then
    perform carrick._remove(c, v_seqs);
  end if;
  return cardinality(v_seqs);
end $$;

create function carrick._prune(p_channel text, p_max_rows int) returns int
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  c carrick.channel := carrick._known_channel(p_channel);
  v_now timestamptz := carrick.clock();
  v_seqs bigint[];
begin
  perform carrick._check_limit('max_rows', p_max_rows, 1000000);
  v_seqs := array(
    select e.seq from carrick.ended e
     where e.channel = p_channel and e.state = 'delivered' and e.ended_at <= v_now - c.retention_days * interval '1 day'
     order by e.ended_at limit p_max_rows for update skip locked);
  v_seqs := v_seqs || array(
    select e.seq from carrick.ended e
     where e.channel = p_channel and e.state = 'dead' and e.ended_at <= v_now - c.dead_retention_days * interval '1 day'
     order by e.ended_at, e.seq limit p_max_rows - cardinality(v_seqs) for update skip locked);
  delete from carrick.remembered_key k
   where k.ctid = any(array(select x.ctid from carrick.remembered_key x
                             where x.channel = p_channel and x.forget_at <= v_now order by x.forget_at));
  delete from carrick.gate g
   where g.channel = p_channel and g.closed_until <= v_now
     and (g.consecutive_failures = 0 or (g.scope <> '*' and g.closed_until <= v_now - interval '1 day'));
  perform carrick._fold_backlog(p_channel);
  if v_seqs <> '{}' then
    perform carrick._remove(c, v_seqs);
  end if;
  return cardinality(v_seqs);
end $$;

create function carrick.prune(channel text) returns int
  language sql as $$ select carrick._prune(channel, 10000) $$;

-- Sessions that are gone leave their difference behind: fold them into one row.
create function carrick._fold_backlog(p_channel text) returns void
  language sql as $$
  with gone as (
    delete from carrick.backlog b
     where (b.channel, b.backend) in (
       select x.channel, x.backend from carrick.backlog x
        where x.channel = p_channel and x.backend <> 0
          and not exists (select from pg_stat_activity a where a.pid = x.backend)
          for update skip locked)
    returning b.bytes),
  total as (select sum(bytes) as bytes from gone)
  insert into carrick.backlog as b (channel, backend, bytes)
  select p_channel, 0, t.bytes from total t where t.bytes is not null
  on conflict (channel, backend) do update set bytes = b.bytes + excluded.bytes
$$;
