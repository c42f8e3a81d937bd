-- The intake: which events were stored together, and when; and the function that forgets them. It stands in for an index of the
-- inbox by time of arrival, which cost a fifth of a row: an entry for each event, where this has a row for each call.

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
