-- Lists of entries, page by page, each state by an index of its own; what a page is stands in paging.py. Plans are pinned as in 0003, but
-- made for the values at hand: a tenant that is given bounds the range. `place_at` is where the entry stands (its rank, or when it ended);
-- `mine` is false for one of another tenant, which only marks how far the look went.
create type carrick.listed_entry as (
  id uuid, seq bigint, channel text, tenant_id text, principal text, group_key text, event_type text, key text,
  payload_size_bytes int, priority int, occurred_at timestamptz, created_at timestamptz, state text,
  next_attempt_at timestamptz, attempt_count int, crash_count int, last_attempt_at timestamptz, last_error_code text,
  last_error_message text, claimed_by text, lease_expires_at timestamptz, delivered_at timestamptz, failed_at timestamptz,
  dlq_reason text, place_at timestamptz, mine boolean);

-- Waiting entries behind a given one, in the order in which they were put, by the key of the table: entries of other channels are passed over
-- on the way. An order by age within a channel would need an index that every put pays for.
create function carrick._list_pending(
  p_channel text, p_tenant text, p_after_seq bigint, p_rows int)
  returns setof carrick.listed_entry
  language plpgsql stable
  set plan_cache_mode = force_custom_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
begin
  return query
  select r.id, r.seq, r.channel::text, r.tenant_id::text, r.principal::text, r.group_key::text, r.event_type::text, r.key::text,
         r.payload_size_bytes, r.priority, r.occurred_at, r.created_at,
         'pending', w.due, coalesce(t.attempt_count, 0), coalesce(t.crash_count, 0), t.last_attempt_at, t.last_error_code,
         t.last_error_message, null::text, null::timestamptz, null::timestamptz, null::timestamptz, null::text, w.rank, true
    from (select x.* from carrick.work x
           where x.channel = p_channel and (p_tenant is null or x.tenant_id = p_tenant)
             and x.seq > p_after_seq
           order by x.seq limit p_rows) w
   cross join lateral carrick._record(w.id) r
    left join lateral carrick._trouble(case when w.troubled then w.seq end) t on true
   order by w.seq;
end $$;

-- Claimed entries behind a given one, in the order in which they were put. All leases of the channel are opened: they are few.
create function carrick._list_claimed(p_channel text, p_tenant text, p_after_seq bigint, p_rows int)
  returns setof carrick.listed_entry
  language plpgsql stable
  set plan_cache_mode = force_custom_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  return query
  select r.id, r.seq, r.channel::text, r.tenant_id::text, r.principal::text, r.group_key::text, r.event_type::text, r.key::text,
         r.payload_size_bytes, r.priority, r.occurred_at, r.created_at,
         'claimed', h.due, coalesce(t.attempt_count, 0), coalesce(t.crash_count, 0), t.last_attempt_at, t.last_error_code,
         t.last_error_message, l.owner, l.expires_at, null::timestamptz, null::timestamptz, null::text, null::timestamptz, true
    from carrick.lease l
   cross join lateral unnest(l.seqs, l.ids, l.dues) as h(seq, id, due)
   cross join lateral carrick._record(h.id) r
    left join lateral carrick._trouble(case when l.troubled then h.seq end) t on true
   where l.channel = p_channel and h.seq > p_after_seq and (p_tenant is null or r.tenant_id = p_tenant)
   order by h.seq limit p_rows;
end $$;

-- Entries that are delivered or dead behind a place, in the order in which they ended. Whose they are stands in the record, so for one
-- tenant the next `p_look` entries are looked at; the last of them comes back too, as the place to go on from. They are sorted as they come
-- from the index, never all of them: PostgreSQL 13 with statistics of an empty table would.
create function carrick._list_ended(
  p_channel text, p_state text, p_tenant text, p_after_at timestamptz, p_after_seq bigint, p_rows int, p_look int)
  returns setof carrick.listed_entry
  language plpgsql stable
  set plan_cache_mode = force_custom_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off as $$
begin
  return query
  select r.id, r.seq, r.channel::text, r.tenant_id::text, r.principal::text, r.group_key::text, r.event_type::text, r.key::text,
         r.payload_size_bytes, r.priority, r.occurred_at, r.created_at,
         e.state, null::timestamptz, e.attempt_count, e.crash_count, case when e.attempt_count > 0 then e.ended_at end,
         e.last_error_code, e.last_error_message, null::text, null::timestamptz,
         case when e.state = 'delivered' then e.ended_at end, case when e.state = 'dead' then e.ended_at end, e.dlq_reason,
         e.ended_at, p_tenant is null or r.tenant_id = p_tenant
    from (select x.*, row_number() over (order by x.ended_at, x.seq) as n
            from (select y.* from carrick.ended y
                   where y.channel = p_channel and y.state = p_state
                     and y.ended_at >= coalesce(p_after_at, '-infinity')
                     and (y.ended_at, y.seq) > (coalesce(p_after_at, '-infinity'), p_after_seq)
                   order by y.ended_at, y.seq limit p_look) x) e
   cross join lateral carrick._record(e.id) r
   where p_tenant is null or r.tenant_id = p_tenant or e.n = p_look
   order by e.ended_at, e.seq limit p_rows;
end $$;
