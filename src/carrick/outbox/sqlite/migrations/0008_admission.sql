-- How a row of carrick_record becomes a waiting entry is said once, in carrick_admission. The trigger admits a row by itself; a
-- bulk put says admitted = 1 and admits all of its rows by one statement (admit.sql), which costs a third of as many triggers.
-- Bounded channels look at each entry, in the trigger of 0007: their rows are never admitted otherwise.
alter table carrick_record add column admitted integer not null default 0 check (admitted in (0, 1));

-- max_wait cuts a longer delay short.
create view carrick_admission as
select seq, id, channel, tenant_id, principal, group_key, size, priority, due, due - priority * 600000000 as rank,
       put_at + cast(max_wait_seconds * 1000000 as integer) as max_wait_at, delayed, loose
  from (select seq, id, channel, tenant_id, principal, group_key, size, priority, put_at, max_wait_seconds, delayed, loose,
               put_at + cast(coalesce(min(delay_seconds, max_wait_seconds), delay_seconds, 0) * 1000000 as integer) as due
          from (select r.seq, r.id, r.channel, r.tenant_id, r.principal, r.group_key, r.payload_size_bytes as size, r.priority,
                       case r.created_at when 0 then (select now from carrick_clock)
                                         else min((select now from carrick_clock), r.created_at) end as put_at,
                       r.delay_seconds, r.max_wait_seconds, r.delay_seconds is not null as delayed,
                       r.group_key is null and c.mode = 'ordered' as loose
                  from carrick_record as r cross join carrick_channel as c on c.name = r.channel));

drop trigger carrick_admit;
create trigger carrick_admit after insert on carrick_record
  when new.admitted = 0 and not exists (select 1 from carrick_backlog as b where b.channel = new.channel)
begin
  select case
           when c.name is null then raise(abort, 'carrick: unknown channel; carrick_channel lists those declared')
           else raise(abort, 'carrick: payload is larger than max_payload_bytes of its channel')
         end
    from (select 1) as one left join carrick_channel as c on c.name = new.channel
   where c.name is null or new.payload_size_bytes > c.max_payload_bytes;
  insert into carrick_work (seq, id, channel, tenant_id, principal, group_key, size, priority, due, rank, max_wait_at,
                            delayed, loose)
  select seq, id, channel, tenant_id, principal, group_key, size, priority, due, rank, max_wait_at, delayed, loose
    from carrick_admission where seq = new.seq;
end;
