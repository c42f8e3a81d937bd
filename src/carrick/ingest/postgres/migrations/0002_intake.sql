-- The functions that take batches and forget them, and the intake: which events were stored together, and when. It stands in for an
-- index of the inbox by time of arrival, which cost a fifth of a row: an entry for each event, where this has a row for each call.

create table carrick.intake (
  id          bigint generated always as identity,
  tenant_id   varchar(255) collate "C" not null,
  received_at timestamptz not null,
  event_ids   text[] collate "C" not null,
  primary key (tenant_id, received_at, id)
);
comment on table carrick.intake is 'Which events of a tenant were stored together, and when. Retention goes by it: an event that is not listed here stays.';
alter table carrick.intake alter column event_ids set storage external; -- compressing ids costs more than it saves
-- For retention. The newest events of a tenant are found by the primary key.
create index intake_received on carrick.intake (received_at);

create policy carrick_tenant on carrick.intake
  using (tenant_id = current_setting('carrick.tenant', true)) with check (tenant_id = current_setting('carrick.tenant', true));

-- What an earlier schema has stored. A batch that is being stored is waited for; one that has been sent and waits for this
-- lock is stored as before, is in no intake, and stays.
lock table carrick.inbox in share row exclusive mode;
insert into carrick.intake (tenant_id, received_at, event_ids)
select i.tenant_id, i.received_at, array_agg(i.event_id) from carrick.inbox i group by i.tenant_id, i.received_at;
drop index if exists carrick.inbox_received;
do $$ begin
  if (select c.relrowsecurity from pg_class c where c.oid = 'carrick.inbox'::regclass) then
    alter table carrick.intake enable row level security;
  end if;
end $$;

-- Stores events of one tenant that are all new, and relays them in the order given. Raises unique_violation when one is not.
create function carrick._store_new(
  p_now timestamptz, p_tenant_id text, p_edge_id text[], p_event_id text[], p_event_type text[], p_payload text[],
  p_occurred_at timestamptz[], p_trace_id text[], p_extra text[], p_channel text, p_id uuid[], p_group_key text[],
  p_headers text[], p_traceparent text[]) returns void
  language plpgsql as $$
begin
  insert into carrick.inbox (tenant_id, event_id, event_type, edge_id, trace_id, occurred_at, received_at, extra, payload)
  select p_tenant_id, e.event_id, e.event_type, e.edge_id, e.trace_id, e.occurred_at, p_now, e.extra::json, e.payload::json
    from unnest(p_edge_id, p_event_id, p_event_type, p_payload, p_occurred_at, p_trace_id, p_extra)
         as e(edge_id, event_id, event_type, payload, occurred_at, trace_id, extra)
   order by e.event_id collate "C";
  insert into carrick.intake (tenant_id, received_at, event_ids) values (p_tenant_id, p_now, p_event_id);
  if p_channel is not null then
    perform carrick._put_new(p_channel, p_tenant_id, p_id, p_event_id, p_event_type, p_payload, p_group_key, p_headers,
                             p_occurred_at, p_traceparent);
  end if;
end $$;

-- Takes batches of which every event is new, which is mostly so: all of them, or nothing and false. An insert that need not look
-- for conflicts costs two thirds, and one of 800 rows half of what eight of 100 cost. Events stand tenant by tenant, those of
-- the nth up to place p_end[n]; tenants, their events and signatures are written in order, so that whoever comes with the same
-- ones waits instead of deadlocking. Mostly there is one tenant, and nothing is copied.
create or replace function carrick._ingest_new(
  p_tenant_id text[], p_end int[], p_edge_id text[], p_event_id text[], p_event_type text[], p_payload text[],
  p_occurred_at timestamptz[], p_trace_id text[], p_extra text[], p_signature bytea[], p_channel text, p_id uuid[],
  p_group_key text[], p_headers text[], p_traceparent text[]) returns boolean
  language plpgsql as $$
declare
  v_now timestamptz := carrick.clock();
  a int := 1;
  b int;
begin
  insert into carrick.ingest_signature (signature, seen_at) select s, v_now from unnest(p_signature) as s order by s;
  if cardinality(p_tenant_id) = 1 then
    perform carrick._store_new(v_now, p_tenant_id[1], p_edge_id, p_event_id, p_event_type, p_payload, p_occurred_at, p_trace_id,
                               p_extra, p_channel, p_id, p_group_key, p_headers, p_traceparent);
    return true;
  end if;
  for n in 1 .. cardinality(p_tenant_id) loop
    b := p_end[n];
    perform carrick._store_new(v_now, p_tenant_id[n], p_edge_id[a:b], p_event_id[a:b], p_event_type[a:b], p_payload[a:b],
                               p_occurred_at[a:b], p_trace_id[a:b], p_extra[a:b], p_channel, p_id[a:b], p_group_key[a:b],
                               p_headers[a:b], p_traceparent[a:b]);
    a := b + 1;
  end loop;
  return true;
exception when unique_violation then
  return false;
end $$;

-- Takes the events of one tenant in one round trip. Whether the request was a replay (then nothing is written), how many
-- events were new, and which, unless it is all of them. Events are inserted in the order of their ids, so that two batches with
-- the same events wait for each other instead of deadlocking; one that waited sees what the other committed. They are relayed
-- in the order given. Mostly all are new, and an insert that need not look for conflicts costs two thirds: so that is tried first.
create or replace function carrick.ingest_batch(
  p_tenant_id text, p_edge_id text, p_event_id text[], p_event_type text[], p_payload text[], p_occurred_at timestamptz[],
  p_trace_id text[], p_extra text[], p_signature bytea default null, p_channel text default null, p_id uuid[] default null,
  p_group_key text[] default null, p_headers text[] default null, p_traceparent text[] default null,
  out replayed boolean, out stored int, out new_ids text[])
  language plpgsql as $$
declare
  v_now timestamptz := carrick.clock();
  v record;
begin
  replayed := false;
  stored := 0;
  if p_signature is not null then
    insert into carrick.ingest_signature (signature, seen_at) values (p_signature, v_now) on conflict do nothing;
    if not found then
      replayed := true;
      return;
    end if;
  end if;
  begin
    insert into carrick.inbox (tenant_id, event_id, event_type, edge_id, trace_id, occurred_at, received_at, extra, payload)
    select p_tenant_id, e.event_id, e.event_type, p_edge_id, e.trace_id, e.occurred_at, v_now, e.extra::json, e.payload::json
      from unnest(p_event_id, p_event_type, p_payload, p_occurred_at, p_trace_id, p_extra)
           as e(event_id, event_type, payload, occurred_at, trace_id, extra)
     order by e.event_id collate "C";
    get diagnostics stored = row_count;
  exception when unique_violation then
    with put as (
      insert into carrick.inbox as i (tenant_id, event_id, event_type, edge_id, trace_id, occurred_at, received_at, extra,
                                      payload)
      select p_tenant_id, e.event_id, e.event_type, p_edge_id, e.trace_id, e.occurred_at, v_now, e.extra::json,
             e.payload::json
        from unnest(p_event_id, p_event_type, p_payload, p_occurred_at, p_trace_id, p_extra)
             as e(event_id, event_type, payload, occurred_at, trace_id, extra)
       order by e.event_id collate "C"
      on conflict do nothing
      returning i.event_id)
    select count(*), array_agg(put.event_id) into stored, new_ids from put;
  end;
  if stored = 0 then
    return;
  end if;
  insert into carrick.intake (tenant_id, received_at, event_ids) values (p_tenant_id, v_now, coalesce(new_ids, p_event_id));
  if p_channel is null then
    return;
  end if;
  if stored = cardinality(p_event_id) then
    perform carrick._put_new(p_channel, p_tenant_id, p_id, p_event_id, p_event_type, p_payload, p_group_key, p_headers,
                             p_occurred_at, p_traceparent);
    return;
  end if;
  select array_agg(e.id order by e.place) as id, array_agg(e.event_id order by e.place) as event_id,
         array_agg(e.event_type order by e.place) as event_type, array_agg(e.payload order by e.place) as payload,
         array_agg(e.group_key order by e.place) as group_key, array_agg(e.headers order by e.place) as headers,
         array_agg(e.occurred_at order by e.place) as occurred_at, array_agg(e.traceparent order by e.place) as traceparent
    into v
    from unnest(p_id, p_event_id, p_event_type, p_payload, p_group_key, p_headers, p_occurred_at, p_traceparent)
         with ordinality
         as e(id, event_id, event_type, payload, group_key, headers, occurred_at, traceparent, place)
    join unnest(new_ids) as n(event_id) on n.event_id = e.event_id;
  perform carrick._put_new(p_channel, p_tenant_id, v.id, v.event_id, v.event_type, v.payload, v.group_key, v.headers,
                           v.occurred_at, v.traceparent);
end $$;

-- Forgets events that came more than so many days ago, at most so many of them, and signatures that are no longer accepted
-- anyway. Goes from intake to intake, the oldest first, so that it costs what it removes; of one that is too large for this
-- call the rest is left for the next. Another call at the same time waits. An event that somebody has removed and that came
-- again belongs to a later intake, by its time.
create or replace function carrick.prune_inbox(p_days double precision, p_max_rows int, p_signature_seconds int) returns int
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off as $$
declare
  v_before timestamptz := carrick.clock() - p_days * interval '1 day';
  c_old cursor for select i.* from carrick.intake i where i.received_at < v_before order by i.received_at for update;
  v_ids text[];
  v_removed int;
  v_count int := 0;
begin
  delete from carrick.ingest_signature s where s.seen_at < carrick.clock() - p_signature_seconds * interval '1 second';
  for v_old in c_old loop
    exit when v_count >= p_max_rows;
    v_ids := v_old.event_ids[:p_max_rows - v_count];
    if current_setting('server_version_num')::int >= 170000 then -- looks all of them up at once, whatever the statistics say
      delete from carrick.inbox x
       where x.tenant_id = v_old.tenant_id and x.event_id = any(v_ids) and x.received_at = v_old.received_at;
    else -- would rather read all events of a tenant that it takes for a small one
      delete from carrick.inbox i where i.ctid = any(array(
        select e.ctid
          from unnest(v_ids) as n(event_id)
         cross join lateral (
           select x.ctid from carrick.inbox x
            where x.tenant_id = v_old.tenant_id and x.event_id = n.event_id and x.received_at = v_old.received_at
           offset 0) e));
    end if;
    get diagnostics v_removed = row_count;
    v_count := v_count + v_removed;
    if cardinality(v_ids) < cardinality(v_old.event_ids) then
      update carrick.intake i set event_ids = i.event_ids[cardinality(v_ids) + 1:] where current of c_old;
    else
      delete from carrick.intake where current of c_old;
    end if;
  end loop;
  return v_count;
end $$;

-- The events of a tenant that came last, the newest first: from its newest intake to older ones, until there are enough. The
-- settings and `offset 0` make it so whatever the statistics say.
create function carrick._recent_events(p_tenant_id text, p_limit int) returns setof carrick.inbox
  language sql stable set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off as $$
  select e.*
    from carrick.intake i
   cross join lateral unnest(i.event_ids) as n(event_id)
   cross join lateral (
     select x.* from carrick.inbox x
      where x.tenant_id = i.tenant_id and x.event_id = n.event_id and x.received_at = i.received_at
     offset 0) e
   where i.tenant_id = p_tenant_id
   order by i.received_at desc, e.event_id desc
   limit p_limit
$$;
