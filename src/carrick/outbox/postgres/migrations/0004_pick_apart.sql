-- Entries that come back apart from others: frozen batches, because nobody knows what became of them, and suspects of a
-- crash, because one of them may have killed the worker.

-- Whether an entry that comes back apart may go now: due, behind no gate, its group free and, in order, it the oldest.
-- Members of its frozen batch do not stand in each other's way. Its plans are those of its caller, as of `_due_group`.
create function carrick._may_return(
  c carrick.channel, w carrick.work, p_tenant text, p_now timestamptz, p_held_tenants text[], p_held_principals text[],
  p_frozen uuid) returns boolean
  language plpgsql volatile as $$
begin
  return w.due <= p_now and (p_tenant is null or w.tenant_id = p_tenant) and w.tenant_id <> all (p_held_tenants)
     and (w.principal is null or w.principal <> all (p_held_principals))
     and (c.mode = 'stream' or w.group_key is null
          or not exists (select from carrick._hold(c.name, w.tenant_id, w.group_key)))
     and (c.mode <> 'coalesce' or w.group_key is null or p_frozen is not null
          or not exists (select from carrick._group(c.name, w.tenant_id, w.group_key) e cross join lateral carrick._trouble(e.seq) o
                          where (o.frozen_batch is not null or e.due > p_now)
                            and (e.principal is null or e.principal <> all (p_held_principals))))
     and (c.mode <> 'ordered' or w.group_key is null
          or not exists (select from carrick._earlier(c.name, w.tenant_id, w.group_key, w.seq) e
                          where not exists (select from carrick._trouble(e.seq) o where o.frozen_batch = p_frozen)));
end $$;

-- The entries of a frozen batch when every one of them may go.
create function carrick._frozen(
  c carrick.channel, p_frozen uuid, p_tenant text, p_now timestamptz, p_held_tenants text[], p_held_principals text[])
  returns bigint[]
  language plpgsql volatile
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
  v_picked bigint[];
  v_may boolean;
begin
  select array_agg(w.seq order by w.seq),
         bool_and(carrick._may_return(c, w, p_tenant, p_now, p_held_tenants, p_held_principals, p_frozen))
    into v_picked, v_may
    from unnest(carrick._places(array(select t.seq from carrick.trouble t where t.frozen_batch = p_frozen))) as p(at)
   cross join lateral carrick._at(p.at) w;
  return case when v_may then v_picked else '{}' end;
end $$;

-- Suspects with the same cap as the given one, at most as many as the cap and the limits allow. A coalesced group is one.
create function carrick._suspects(
  c carrick.channel, p_first carrick.work, p_cap int, p_tenant text, p_now timestamptz, p_held_tenants text[],
  p_held_principals text[], p_rows int, p_bytes bigint) returns bigint[]
  language plpgsql volatile
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
  v_tenant text := case when c.one_tenant or c.mode = 'coalesce' then p_first.tenant_id else p_tenant end;
  v_picked bigint[];
begin
  select array_agg(m.seq order by u.n, m.seq) into v_picked
    from (
      select row_number() over (order by f.due, f.seq) as n, sum(f.size) over (order by f.due, f.seq) as upto, f.*
        from (
          select w.due, w.seq, g.size, g.seqs
            from carrick._specials(c.name, p_now) w cross join lateral carrick._trouble(w.seq) t
           cross join lateral (
             select array[w.seq] as seqs, w.size::bigint as size, w.seq as first where c.mode <> 'coalesce' or w.group_key is null
             union all
             select array_agg(e.seq), sum(e.size),
                    min(e.seq) filter (where e.special and e.due <= p_now
                                         and exists (select from carrick._trouble(e.seq) o where o.frozen_batch is null))
               from carrick._group(c.name, w.tenant_id, w.group_key) e
              where c.mode = 'coalesce' and (e.principal is null or e.principal <> all (p_held_principals))
             having count(*) > 0) g
           where t.frozen_batch is null and t.batch_cap = p_cap and w.seq = g.first
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
  p_rows int, p_bytes bigint) returns tid[]
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
  s record;
  v_picked bigint[];
  v_locked tid[];
begin
  for s in
    select w as work, t.batch_cap, t.frozen_batch
      from carrick._specials(c.name, p_now) w cross join lateral carrick._trouble(w.seq) t
     where (p_turn is null or w.tenant_id = p_turn)
       and carrick._may_return(c, w, p_tenant, p_now, p_held_tenants, p_held_principals, t.frozen_batch)
     order by w.due, w.seq
  loop
    v_picked := carrick._apart(c, s.work, s.batch_cap, s.frozen_batch, p_turn, p_tenant, p_now, p_held_tenants,
                               p_held_principals, p_rows, p_bytes);
    continue when v_picked = '{}';
    v_locked := array(select w.ctid from carrick.work w where w.ctid = any(carrick._places(v_picked)) for update skip locked);
    if cardinality(v_locked) = cardinality(v_picked)
       -- locked now: look again, another claimer may have tried them in between
       and v_picked = carrick._apart(c, s.work, s.batch_cap, s.frozen_batch, p_turn, p_tenant, p_now, p_held_tenants,
                                     p_held_principals, p_rows, p_bytes) then
      return v_locked;
    end if;
  end loop;
  return '{}';
end $$;
