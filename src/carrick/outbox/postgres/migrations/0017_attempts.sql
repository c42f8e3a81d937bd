-- What became of each delivery that did not go through, so that an entry's story is whole. Written only when something goes
-- wrong, by triggers on what is written then anyway; goes with its record.

create table carrick.attempt (
  seq     bigint not null,
  at      timestamptz not null,
  outcome text not null check (outcome in ('failed', 'lapsed', 'dead')),
  number  int not null,
  code    text,
  message text
);
comment on table carrick.attempt is 'failed: the destination did not take it; lapsed: its worker let the lease run out; dead: it was given up, and redriven since.';
create index attempt_seq on carrick.attempt (seq, at);
insert into carrick.attempt (seq, at, outcome, number, code, message)
select t.seq, t.last_attempt_at, 'failed', t.attempt_count, t.last_error_code, t.last_error_message
  from carrick.trouble t where t.last_attempt_at is not null;

-- An attempt that failed, or a lease that ran out. Of an entry that goes on failing the last 20 are kept.
create function carrick._note_attempts() returns trigger
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
begin
  if not exists (select from new_rows) then -- a finish without failures asks too
    return null;
  end if;
  if tg_op = 'INSERT' then
    insert into carrick.attempt (seq, at, outcome, number, code, message)
    select n.seq, coalesce(n.last_attempt_at, carrick.clock()), case when n.last_attempt_at is null then 'lapsed' else 'failed' end,
           n.attempt_count, n.last_error_code, n.last_error_message
      from new_rows n;
    return null;
  end if;
  insert into carrick.attempt (seq, at, outcome, number, code, message)
  select n.seq, case when f.failed then n.last_attempt_at else carrick.clock() end, case when f.failed then 'failed' else 'lapsed' end,
         n.attempt_count, case when f.failed then n.last_error_code end, case when f.failed then n.last_error_message end
    from new_rows n
    join old_rows o on o.seq = n.seq
   cross join lateral (select n.last_attempt_at is distinct from o.last_attempt_at) f(failed)
   where f.failed or n.crash_count > o.crash_count or (n.batch_cap is not null and n.batch_cap is distinct from o.batch_cap);
  delete from carrick.attempt a
   where a.ctid = any(array(select x.ctid from new_rows n
                             cross join lateral (select y.ctid from carrick.attempt y where y.seq = n.seq order by y.at desc offset 20) x
                             where n.attempt_count > 20));
  return null;
end $$;
create trigger carrick_first_attempts after insert on carrick.trouble referencing new table as new_rows
  for each statement execute function carrick._note_attempts();
create trigger carrick_more_attempts after update on carrick.trouble referencing old table as old_rows new table as new_rows
  for each statement execute function carrick._note_attempts();

-- A dead entry comes back: how it died is kept. One that is removed takes this with it, in the next statement.
create function carrick._note_death() returns trigger
  language plpgsql as $$
begin
  insert into carrick.attempt (seq, at, outcome, number, code, message)
  select o.seq, o.ended_at, 'dead', o.attempt_count, coalesce(o.last_error_code, o.dlq_reason), o.last_error_message
    from old_rows o where o.state = 'dead';
  return null;
end $$;
create trigger carrick_death after delete on carrick.ended referencing old table as old_rows
  for each statement execute function carrick._note_death();

create function carrick._forget_attempts() returns trigger
  language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
begin
  delete from carrick.attempt a where a.seq = any(array(select o.seq from old_rows o));
  return null;
end $$;
create trigger carrick_forget_attempts after delete on carrick.record referencing old table as old_rows
  for each statement execute function carrick._forget_attempts();
