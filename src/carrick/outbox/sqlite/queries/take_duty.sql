-- Takes a duty, or keeps it: a row when it is the owner's now.
insert into carrick_duty (name, owner, until) values (:duty, :owner, :until)
on conflict (name) do update set owner = excluded.owner, until = excluded.until
  where owner = excluded.owner or until <= :now
returning 1
