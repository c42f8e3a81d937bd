-- _put_new: entries of one tenant with keys of their own, put into one channel by two statements instead of a call each.
-- It is for callers that have made sure by other means that each key comes once: a key that is known is left alone,
-- whatever the content. All are put or, with an error, none. Ids are made by the caller: a thousand of them cost more here
-- than a thousand rows.

create function carrick._put_new(
  p_channel text, p_tenant_id text, p_id uuid[], p_key text[], p_event_type text[], p_payload text[], p_group_key text[],
  p_headers text[], p_occurred_at timestamptz[], p_traceparent text[]) returns void
  language plpgsql as $$
declare
  c carrick.channel := carrick._known_channel(p_channel);
  v_now timestamptz := carrick.clock();
  e record;
  v_problem text;
begin
  if exists (select from unnest(p_payload) as t(payload) where octet_length(t.payload) > c.max_payload_bytes) then
    perform carrick._raise_problem('payload_too_large', p_channel, null);
  end if;
  if c.max_backlog_bytes is null and not exists (select from carrick.remembered_key m where m.channel = p_channel) then
    begin
      with put as (
        insert into carrick.record as r (id, channel, tenant_id, group_key, event_type, key, payload, payload_size_bytes,
                                         headers, traceparent, occurred_at, created_at)
        select t.id, p_channel, p_tenant_id, t.group_key, t.event_type, t.key, t.payload::json, octet_length(t.payload),
               t.headers::jsonb, t.traceparent, t.occurred_at, v_now
          from (select unnest(p_id) as id, unnest(p_key) as key, unnest(p_event_type) as event_type, unnest(p_payload) as payload,
                       unnest(p_group_key) as group_key, unnest(p_headers) as headers, unnest(p_occurred_at) as occurred_at,
                       unnest(p_traceparent) as traceparent) as t
        returning r.seq, r.id, r.group_key, r.payload_size_bytes)
      insert into carrick.work (seq, id, channel, tenant_id, group_key, size, priority, due, rank)
      select put.seq, put.id, p_channel, p_tenant_id, put.group_key, put.payload_size_bytes, 0, v_now, v_now from put;
      perform carrick._wake(p_channel);
      return;
    exception when unique_violation then
      null; -- a key is known: each is looked at
    end;
  end if;
  for e in select * from unnest(p_id, p_key, p_event_type, p_payload, p_group_key, p_headers, p_occurred_at, p_traceparent)
           as t(id, key, event_type, payload, group_key, headers, occurred_at, traceparent) loop
    v_problem := problem from carrick._put(p_channel, e.event_type, e.payload::json, e.key, p_tenant_id, e.group_key, null, 0,
                                           e.headers::jsonb, e.occurred_at, null, null, e.traceparent, null, e.id);
    if v_problem is not null and v_problem <> 'key_reused' then
      perform carrick._raise_problem(v_problem, p_channel, e.key);
    end if;
  end loop;
end $$;
