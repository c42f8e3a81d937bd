-- Waiting entries behind a given one, in the order in which they were put. An order by age within a channel would need an index that every
-- put pays for. So the next 1,000 entries of the table are looked through. If they do not make a page, up to 10,000 entries of the channel
-- (or of the tenant) are sorted; where more wait, the next 20,000 of the table are looked through, and the last of them comes back too, as
-- the place to go on from. Every text is less than a blob.
with near (seq) as materialized (
  select n.seq
    from (select w.seq, w.channel, w.tenant_id, w.batch_id from carrick_work as w not indexed where w.seq > :after_seq
           order by w.seq limit 1000) as n
   where n.channel = :channel and (:tenant is null or n.tenant_id = :tenant) and n.batch_id is null
   limit :rows),
few (entries) as materialized (
  select (select count(*)
            from (select 1 from carrick_work as w indexed by carrick_work_rank
                   where w.channel = :channel and w.tenant_id between coalesce(:tenant, '') and coalesce(:tenant, x'')
                     and w.batch_id is null
                   limit 10001))
   where (select count(*) from near) < :rows),
last (seq) as materialized (
  select coalesce((select w.seq from carrick_work as w where w.seq > :after_seq order by w.seq limit 1 offset 19999), 9223372036854775807)
    from few where few.entries > 10000),
chosen (seq, mine) as materialized (
  select seq, 1 from near where not exists (select 1 from few)
  union all
  select * from (
    select w.seq, 1
      from few cross join carrick_work as w indexed by carrick_work_rank
        on w.channel = :channel and w.tenant_id between coalesce(:tenant, '') and coalesce(:tenant, x'') and w.batch_id is null
     where few.entries <= 10000 and w.seq > :after_seq
     order by w.seq limit :rows)
  union all
  select * from (
    select w.seq, w.channel = :channel and (:tenant is null or w.tenant_id = :tenant) and w.batch_id is null as mine
      from last cross join carrick_work as w not indexed on w.seq > :after_seq and w.seq <= last.seq
     where mine or w.seq = last.seq
     order by w.seq limit :rows))
select r.id, r.seq, r.channel, r.tenant_id, r.principal, r.group_key, r.event_type, r.key, r.payload_size_bytes, r.priority,
       r.occurred_at, r.created_at, 'pending', w.due, coalesce(t.attempt_count, 0), coalesce(t.crash_count, 0),
       t.last_attempt_at, t.last_error_code, t.last_error_message, null, null, null, null, null,
       w.rank, c.mine
  from chosen as c
 cross join carrick_work as w on w.seq = c.seq
 cross join carrick_record as r on r.seq = c.seq
  left join carrick_trouble as t on w.troubled = 1 and t.seq = w.seq
 order by c.seq
