-- What became of each delivery that did not go through, so that an entry's story is whole. Written only when something goes
-- wrong, by triggers on what is written then anyway; goes with its record.
-- failed: the destination did not take it; lapsed: its worker let the lease run out; dead: given up, and redriven since.
create table carrick_attempt (
  seq     integer not null,
  at      integer not null,
  outcome text not null check (outcome in ('failed', 'lapsed', 'dead')),
  number  integer not null,
  code    text,
  message text
) strict;
create index carrick_attempt_seq on carrick_attempt (seq, at);
insert into carrick_attempt (seq, at, outcome, number, code, message)
select seq, last_attempt_at, 'failed', attempt_count, last_error_code, last_error_message
  from carrick_trouble where last_attempt_at is not null;

create trigger carrick_first_attempt after insert on carrick_trouble
begin
  insert into carrick_attempt (seq, at, outcome, number, code, message)
  values (new.seq, coalesce(new.last_attempt_at, (select now from carrick_clock)),
          case when new.last_attempt_at is null then 'lapsed' else 'failed' end, new.attempt_count,
          new.last_error_code, new.last_error_message);
end;

-- Of an entry that goes on failing the last 20 are kept.
create trigger carrick_failed_again after update on carrick_trouble when new.last_attempt_at is not old.last_attempt_at
begin
  insert into carrick_attempt (seq, at, outcome, number, code, message)
  values (new.seq, new.last_attempt_at, 'failed', new.attempt_count, new.last_error_code, new.last_error_message);
  delete from carrick_attempt
   where new.attempt_count > 20 and seq = new.seq
     and at < (select x.at from carrick_attempt as x where x.seq = new.seq order by x.at desc limit 1 offset 19);
end;

create trigger carrick_lapsed_again after update on carrick_trouble
  when new.last_attempt_at is old.last_attempt_at
   and (new.crash_count > old.crash_count or (new.batch_cap is not null and new.batch_cap is not old.batch_cap))
begin
  insert into carrick_attempt (seq, at, outcome, number)
  values (new.seq, (select now from carrick_clock), 'lapsed', new.attempt_count);
end;

-- A dead entry comes back: how it died is kept. One that is removed takes this with it, in the next statement.
create trigger carrick_death after delete on carrick_ended when old.state = 'dead'
begin
  insert into carrick_attempt (seq, at, outcome, number, code, message)
  values (old.seq, old.ended_at, 'dead', old.attempt_count, coalesce(old.last_error_code, old.dlq_reason),
          old.last_error_message);
end;

create trigger carrick_forget_attempts after delete on carrick_record
begin
  delete from carrick_attempt where seq = old.seq;
end;

-- The newest record is only emptied.
create trigger carrick_forget_attempts_of_emptied after update of id on carrick_record
begin
  delete from carrick_attempt where seq = old.seq;
end;
