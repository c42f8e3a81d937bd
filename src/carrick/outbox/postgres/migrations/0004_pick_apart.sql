-- Entries that come back apart from others: frozen batches, because nobody knows what became of them, and suspects of a
-- crash, because one of them may have killed the worker.

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
                            and (o.frozen_batch is not null or e.due > p_now)
                            and (o.frozen_batch is not null or e.principal is null or e.principal <> all (p_held_principals))))
     and (c.mode <> 'ordered' or w.group_key is null
          or not exists (select from carrick.work e where e.channel = c.name and e.tenant_id = w.tenant_id
                            and e.group_key = w.group_key and e.seq < w.seq
                            and not exists (select from carrick.trouble o where o.seq = e.seq and o.frozen_batch = p_frozen)));
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
                      where e.seq = any(s.seqs) and e.special and e.due <= p_now and o.frozen_batch is null) as first) g
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
