-- Why put.sql inserted nothing: what the channel accepts, and whom the key belongs to.
select c.name, c.max_payload_bytes, c.max_backlog_bytes,
       r.id, r.event_type, r.group_key, r.principal, r.payload,
       case when w.seq is null then e.state when w.batch_id is null then 'pending' else 'claimed' end,
       m.id, m.content_hash, m.state,
       c.max_backlog_bytes is not null
       and (:size > c.max_backlog_bytes or (c.on_full = 'reject' and b.bytes + :size > c.max_backlog_bytes))
  from (select 1) as one
  left join carrick_channel as c on c.name = :channel
  left join carrick_backlog as b on b.channel = :channel
  left join carrick_record as r on r.channel = :channel and r.tenant_id = :tenant_id and r.key = :key
  left join carrick_work as w on w.seq = r.seq
  left join carrick_ended as e on e.seq = r.seq
  left join carrick_remembered_key as m
    on m.channel = :channel and m.tenant_id = :tenant_id and m.key = :key and m.forget_at > (select now from carrick_clock)
