-- What happens by itself: a row of carrick_record gets its time; a bounded channel has its bytes counted. That it becomes a
-- waiting entry, whoever inserted it, is in 0007. So a producer in any language needs one INSERT, and a put of the library is
-- the same INSERT.

create trigger carrick_date after insert on carrick_record when new.created_at = 0
begin
  update carrick_record set created_at = (select now from carrick_clock) where seq = new.seq;
end;

create trigger carrick_bound_new after insert on carrick_channel when new.max_backlog_bytes is not null
begin
  insert into carrick_backlog (channel, bytes) values (new.name, 0);
end;

-- A bound that is declared later counts what already waits; one that is taken back counts no longer.
create trigger carrick_bound_changed after update of max_backlog_bytes, on_full on carrick_channel
  when new.max_backlog_bytes is not old.max_backlog_bytes or new.on_full <> old.on_full
begin
  delete from carrick_backlog where channel = new.name and new.max_backlog_bytes is null;
  insert into carrick_backlog (channel, bytes)
  select new.name, coalesce((select sum(w.size) from carrick_work as w where w.channel = new.name), 0)
   where new.max_backlog_bytes is not null and old.max_backlog_bytes is null;
  update carrick_work set evictable = (new.max_backlog_bytes is not null and new.on_full = 'evict')
   where channel = new.name;
end;
