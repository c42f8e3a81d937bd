-- The inbox: events that came from forwarders, each once per tenant and event id, and the function that takes a batch.
-- Rows are inserted and, after their retention, deleted; nothing is ever updated.

create table carrick.inbox (
  tenant_id   varchar(255) collate "C" not null,
  event_id    varchar(255) collate "C" not null check (event_id <> ''),
  event_type  varchar(255) not null check (event_type <> ''),
  edge_id     varchar(255),
  trace_id    varchar(255),
  occurred_at timestamptz,
  received_at timestamptz not null,
  extra       json,
  payload     json not null,
  primary key (tenant_id, event_id)
);
comment on table carrick.inbox is 'Events taken by carrick ingest. extra: fields of the event beside its own; payload: the bytes as they were sent.';
-- One index for two readers: the newest events of a tenant, and retention, which goes from tenant to tenant.
create index inbox_received on carrick.inbox (tenant_id, received_at);

create table carrick.ingest_signature (
  signature bytea primary key,
  seen_at   timestamptz not null
);
comment on table carrick.ingest_signature is 'Signatures of batches that were taken: the same request again is a replay.';
create index ingest_signature_seen on carrick.ingest_signature (seen_at);

-- Turned on and off with that of the other tables that hold a tenant's data: carrick.enable_row_security().
create policy carrick_tenant on carrick.inbox
  using (tenant_id = current_setting('carrick.tenant', true)) with check (tenant_id = current_setting('carrick.tenant', true));

-- Takes batches of which every event is new, which is mostly so: all of them, or nothing and false. An insert that need not look
-- for conflicts costs two thirds, and one of 800 rows half of what eight of 100 cost. Events stand tenant by tenant, those of
-- the nth up to place p_end[n]; tenants, their events and signatures are written in order, so that whoever comes with the same
-- ones waits instead of deadlocking. Events are relayed in the order given.
create function carrick._ingest_new(
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
  for n in 1 .. cardinality(p_tenant_id) loop
    b := p_end[n];
    insert into carrick.inbox (tenant_id, event_id, event_type, edge_id, trace_id, occurred_at, received_at, extra, payload)
    select p_tenant_id[n], e.event_id, e.event_type, e.edge_id, e.trace_id, e.occurred_at, v_now, e.extra::json, e.payload::json
      from unnest(p_edge_id[a:b], p_event_id[a:b], p_event_type[a:b], p_payload[a:b], p_occurred_at[a:b], p_trace_id[a:b],
                  p_extra[a:b])
           as e(edge_id, event_id, event_type, payload, occurred_at, trace_id, extra)
     order by e.event_id collate "C";
    if p_channel is not null then
      perform carrick._put_new(p_channel, p_tenant_id[n], p_id[a:b], p_event_id[a:b], p_event_type[a:b], p_payload[a:b],
                               p_group_key[a:b], p_headers[a:b], p_occurred_at[a:b], p_traceparent[a:b]);
    end if;
    a := b + 1;
  end loop;
  return true;
exception when unique_violation then
  return false;
end $$;

-- Takes the events of one tenant in one round trip. Whether the request was a replay (then nothing is written), how many
-- events were new, and which, unless it is all of them. Events are inserted in the order of their ids, so that two batches with the same events wait for
-- each other instead of deadlocking; one that waited sees what the other committed. They are relayed in the order given.
-- Mostly all are new, and an insert that need not look for conflicts costs two thirds: so that is tried first.
create function carrick.ingest_batch(
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
  if stored = 0 or p_channel is null then
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
-- anyway. Goes from tenant to tenant in the index, so that it costs what it removes and one look per tenant.
create function carrick.prune_inbox(p_days double precision, p_max_rows int, p_signature_seconds int) returns int
  language plpgsql as $$
declare
  v_before timestamptz := carrick.clock() - p_days * interval '1 day';
  v_count int;
begin
  delete from carrick.ingest_signature s where s.seen_at < carrick.clock() - p_signature_seconds * interval '1 second';
  delete from carrick.inbox i where i.ctid = any(array(
    with recursive tenant as (
      (select x.tenant_id from carrick.inbox x order by x.tenant_id limit 1)
      union all
      select (select x.tenant_id from carrick.inbox x where x.tenant_id > t.tenant_id order by x.tenant_id limit 1)
        from tenant t where t.tenant_id is not null)
    select o.ctid
      from tenant t
     cross join lateral (
       select x.ctid from carrick.inbox x where x.tenant_id = t.tenant_id and x.received_at < v_before
        order by x.received_at limit p_max_rows) o
     limit p_max_rows));
  get diagnostics v_count = row_count;
  return v_count;
end $$;
