-- The clock of a SQLite file is its host's, and a host's may have been wrong: what was put, claimed or closed while it was far ahead would wait
-- until that time comes. So puts, claims and the duty of a relay at rest take note of the time, once a minute (bulk puts by see.sql), and a claim
-- that finds an earlier time than that turns all times to come back by as much (turn_back.sql).
alter table carrick_clock_shift add column seen integer not null default 0;

create trigger carrick_turn_back after update of seen on carrick_clock_shift when new.seen < old.seen
begin
  update carrick_work
     set due = due + new.seen - old.seen, rank = rank + new.seen - old.seen, max_wait_at = max_wait_at + new.seen - old.seen
   where due > new.seen;
  update carrick_lease
     set claimed_at = claimed_at + new.seen - old.seen, expires_at = expires_at + new.seen - old.seen
   where expires_at > new.seen;
  update carrick_gate set closed_until = closed_until + new.seen - old.seen
   where closed_until > new.seen and closed_until < 9223372036854775807;
  update carrick_duty set until = until + new.seen - old.seen where until > new.seen;
  update carrick_ended set ended_at = new.seen
   where state = 'delivered' and channel in (select c.name from carrick_channel as c) and ended_at > new.seen;
  update carrick_ended set ended_at = new.seen
   where state = 'dead' and channel in (select c.name from carrick_channel as c) and ended_at > new.seen;
end;

create trigger carrick_see_put after insert on carrick_record when new.admitted = 0
begin
  update carrick_clock_shift set seen = (select now from carrick_clock) where seen < (select now from carrick_clock) - 60000000;
end;
create trigger carrick_see_claim after insert on carrick_lease
begin
  update carrick_clock_shift set seen = (select now from carrick_clock) where seen < (select now from carrick_clock) - 60000000;
end;
create trigger carrick_see_duty after update of until on carrick_duty
begin
  update carrick_clock_shift set seen = (select now from carrick_clock) where seen < (select now from carrick_clock) - 60000000;
end;
