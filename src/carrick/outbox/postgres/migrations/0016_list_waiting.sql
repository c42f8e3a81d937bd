-- Waiting entries behind a given one, in the order in which they were put: as `_list_pending` of 0012 (which older releases call), but at a
-- cost that does not grow with what waits in other channels. An order by age within a channel would need an index that every put pays for.
-- So the next 1,000 entries of the table are looked through. If they do not make a page, up to 10,000 entries of the channel (or of the
-- tenant) are sorted; where more wait, the next 20,000 of the table are looked through, and the last of them comes back too, as the place to
-- go on from.
create function carrick._list_waiting(p_channel text, p_tenant text, p_after_seq bigint, p_rows int)
  returns setof carrick.listed_entry
  language plpgsql stable
  set plan_cache_mode = force_custom_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
  v_last bigint;
  v_found tid[]; -- where they lie: all statements of a stable function see the same rows
begin
  v_found := array(select w.at
                    from (select x.ctid as at, x.seq, x.channel, x.tenant_id from carrick.work x where x.seq > p_after_seq
                           order by x.seq limit 1000) w
                   where w.channel = p_channel and (p_tenant is null or w.tenant_id = p_tenant)
                   order by w.seq limit p_rows);
  if cardinality(v_found) = p_rows then
    null; -- most of what waits next is asked for
  elsif (select count(*) from (select from carrick.work x where x.channel = p_channel and (p_tenant is null or x.tenant_id = p_tenant)
                             order by x.channel, x.tenant_id, x.rank, x.seq limit 10001) few) <= 10000 then
    v_found := array(select w.at
                      from (select x.ctid as at, x.seq from carrick.work x
                             where x.channel = p_channel and (p_tenant is null or x.tenant_id = p_tenant)
                             order by x.channel, x.tenant_id, x.rank, x.seq limit 10000) w
                     where w.seq > p_after_seq order by w.seq limit p_rows);
  else
    v_last := (select x.seq from carrick.work x where x.seq > p_after_seq order by x.seq offset 19999 limit 1);
    v_found := array(select x.ctid from carrick.work x
                     where x.seq > p_after_seq and x.seq <= coalesce(v_last, 9223372036854775807)
                       and ((x.channel = p_channel and (p_tenant is null or x.tenant_id = p_tenant)) or x.seq = v_last)
                     order by x.seq limit p_rows);
  end if;
  return query
  select r.id, r.seq, r.channel::text, r.tenant_id::text, r.principal::text, r.group_key::text, r.event_type::text, r.key::text,
         r.payload_size_bytes, r.priority, r.occurred_at, r.created_at,
         'pending', w.due, coalesce(t.attempt_count, 0), coalesce(t.crash_count, 0), t.last_attempt_at, t.last_error_code,
         t.last_error_message, null::text, null::timestamptz, null::timestamptz, null::timestamptz, null::text, w.rank,
         r.channel = p_channel and (p_tenant is null or r.tenant_id = p_tenant)
    from unnest(v_found) as p(at)
   cross join lateral carrick._at(p.at) w
   cross join lateral carrick._record(w.id) r
    left join lateral carrick._trouble(case when w.troubled then w.seq end) t on true
   order by w.seq;
end $$;
