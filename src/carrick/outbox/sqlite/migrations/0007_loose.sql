-- Entries of ordered channels without a group (loose = 1) can be found by themselves: a claim that goes from group to group,
-- because the oldest entries all wait behind a few heads, must not read through them for those that wait behind nobody.
-- With it, a row of carrick_record becomes a waiting entry.
alter table carrick_work add column loose integer not null default 0 check (loose in (0, 1));
update carrick_work set loose = 1
 where group_key is null and channel in (select c.name from carrick_channel as c where c.mode = 'ordered');
create index carrick_work_loose on carrick_work (channel, tenant_id, rank, seq) where loose = 1;
drop trigger if exists carrick_admit;
drop trigger if exists carrick_admit_bounded;

-- The entry waits. max_wait cuts a longer delay short.
create trigger carrick_admit after insert on carrick_record
  when not exists (select 1 from carrick_backlog as b where b.channel = new.channel)
begin
  select case
           when c.name is null then raise(abort, 'carrick: unknown channel; carrick_channel lists those declared')
           else raise(abort, 'carrick: payload is larger than max_payload_bytes of its channel')
         end
    from (select 1) as one left join carrick_channel as c on c.name = new.channel
   where c.name is null or new.payload_size_bytes > c.max_payload_bytes;
  insert into carrick_work (seq, id, channel, tenant_id, principal, group_key, size, priority, due, rank, max_wait_at,
                            delayed, loose)
  select new.seq, new.id, new.channel, new.tenant_id, new.principal, new.group_key, new.payload_size_bytes, new.priority,
         d.due, d.due - new.priority * 600000000, d.put_at + cast(new.max_wait_seconds * 1000000 as integer),
         new.delay_seconds is not null,
         new.group_key is null and (select c.mode = 'ordered' from carrick_channel as c where c.name = new.channel)
    from (select k.put_at, k.put_at + cast(coalesce(min(new.delay_seconds, new.max_wait_seconds), new.delay_seconds, 0)
                                           * 1000000 as integer) as due
            from (select case new.created_at when 0 then now else min(now, new.created_at) end as put_at
                    from carrick_clock) as k) as d;
end;

-- The same in a bounded channel. Where there is no room the channel rejects, or evicts: the waiting entries of lowest rank
-- make way for the new one, unless one of higher priority is among them or all of it is not enough; then nothing is
-- evicted, and the new entry is dead at once. At most 1000 make way for one; they are marked by a batch that no lease has.
create trigger carrick_admit_bounded after insert on carrick_record
  when exists (select 1 from carrick_backlog as b where b.channel = new.channel)
begin
  select raise(abort, 'carrick: payload is larger than max_payload_bytes of its channel')
    from carrick_channel as c
   where c.name = new.channel and new.payload_size_bytes > c.max_payload_bytes;
  select raise(abort, 'carrick: channel is full, its waiting entries reach max_backlog_bytes')
    from carrick_channel as c join carrick_backlog as b on b.channel = c.name
   where c.name = new.channel and b.bytes + new.payload_size_bytes > c.max_backlog_bytes
     and (c.on_full = 'reject' or new.payload_size_bytes > c.max_backlog_bytes);
  update carrick_work set batch_id = -1
   where seq in (
     select y.seq
       from (select x.seq, x.size, x.upto, max(x.upto) over () as most,
                    (select b.bytes + new.payload_size_bytes - c.max_backlog_bytes
                       from carrick_backlog as b join carrick_channel as c on c.name = b.channel
                      where b.channel = new.channel) as over_by
               from (select w.seq, w.size,
                            sum(w.size) over (order by w.rank desc, w.seq desc rows unbounded preceding) as upto,
                            max(w.priority) over (order by w.rank desc, w.seq desc rows unbounded preceding) as highest
                       from (select z.seq, z.size, z.priority, z.rank from carrick_work as z
                              where z.channel = new.channel and z.evictable = 1 and z.batch_id is null
                                and (select b.bytes + new.payload_size_bytes > c.max_backlog_bytes
                                       from carrick_backlog as b join carrick_channel as c on c.name = b.channel
                                      where b.channel = new.channel)
                              order by z.rank desc, z.seq desc limit 1000) as w) as x
              where x.highest <= new.priority) as y
      where y.most >= y.over_by and y.upto - y.size < y.over_by);
  insert into carrick_ended (seq, channel, state, ended_at, attempt_count, crash_count, last_error_code,
                             last_error_message, dlq_reason)
  select w.seq, w.channel, 'dead', (select now from carrick_clock), coalesce(t.attempt_count, 0),
         coalesce(t.crash_count, 0), t.last_error_code, t.last_error_message, 'evicted'
    from carrick_work as w left join carrick_trouble as t on w.troubled = 1 and t.seq = w.seq
   where w.batch_id = -1;
  update carrick_backlog
     set bytes = bytes - coalesce((select sum(w.size) from carrick_work as w where w.batch_id = -1), 0)
   where channel = new.channel;
  delete from carrick_trouble where seq in (select w.seq from carrick_work as w where w.batch_id = -1 and w.troubled = 1);
  delete from carrick_work where batch_id = -1;

  insert into carrick_ended (seq, channel, state, ended_at, attempt_count, dlq_reason)
  select new.seq, new.channel, 'dead', (select now from carrick_clock), 0, 'evicted'
    from carrick_backlog as b join carrick_channel as c on c.name = b.channel
   where b.channel = new.channel and b.bytes + new.payload_size_bytes > c.max_backlog_bytes;
  insert into carrick_work (seq, id, channel, tenant_id, principal, group_key, size, priority, due, rank, max_wait_at,
                            delayed, evictable, loose)
  select new.seq, new.id, new.channel, new.tenant_id, new.principal, new.group_key, new.payload_size_bytes, new.priority,
         d.due, d.due - new.priority * 600000000, d.put_at + cast(new.max_wait_seconds * 1000000 as integer),
         new.delay_seconds is not null,
         (select c.on_full = 'evict' from carrick_channel as c where c.name = new.channel),
         new.group_key is null and (select c.mode = 'ordered' from carrick_channel as c where c.name = new.channel)
    from (select k.put_at, k.put_at + cast(coalesce(min(new.delay_seconds, new.max_wait_seconds), new.delay_seconds, 0)
                                           * 1000000 as integer) as due
            from (select case new.created_at when 0 then now else min(now, new.created_at) end as put_at
                    from carrick_clock) as k) as d
   where not exists (select 1 from carrick_ended as e where e.seq = new.seq);
  update carrick_backlog set bytes = bytes + new.payload_size_bytes
   where channel = new.channel and not exists (select 1 from carrick_ended as e where e.seq = new.seq);
end;
