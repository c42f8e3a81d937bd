-- The entries that a bulk put has put last, so many of them, wait from now on: as the trigger of 0008 does for one by itself.
insert into carrick_work (seq, id, channel, tenant_id, principal, group_key, size, priority, due, rank, max_wait_at, delayed, loose)
select seq, id, channel, tenant_id, principal, group_key, size, priority, due, rank, max_wait_at, delayed, loose
  from carrick_admission where seq > (select max(seq) from carrick_record) - :count
