-- Takes the entry that waits, if it is the only one of its channel and may go: what whoever is woken by a put mostly finds, so that turns,
-- ranks and limits have nothing to decide. As one statement, prepared where notifications are heard, it takes two thirds of the time of
-- `_claim`. No row where there is a choice or a gate, or when the entry has been in trouble: that is for `_claim`, and so are leases that
-- have run out. The other entries of its group are delivered, dead or under a lease that holds the group (G4, G5). SQLite asks the same,
-- but only looks: its claim is one transaction of many statements anyway.
with moment as materialized (
  select now, now + x.seconds * interval '1 second' as until, carrick.uuid7() as batch_id, x.seconds, c.mode <> 'stream' as grouped,
         coalesce(now - %(fresh_seconds)s::float8 * interval '1 second', '-infinity') as floor
    from carrick.channel c cross join carrick.clock() as now
   cross join lateral (select coalesce(%(lease_seconds)s::int, c.lease_seconds) as seconds) x
   where c.name = %(channel)s::text
     and not exists (select from carrick.gate g where g.channel = %(channel)s::text)),
near as materialized (
  select w.ctid as at from carrick.work w where w.channel = %(channel)s::text limit 2),
taken as (
  delete from carrick.work w
   where w.ctid = any(array(
           select o.ctid from carrick.work o
            where o.ctid = any(array(select n.at from near n)) and (select count(*) from near) = 1
              and o.due <= (select m.now from moment m) and o.rank >= (select m.floor from moment m)
              and not o.special and not o.troubled
              and (o.group_key is null or not exists (select from carrick._hold(%(channel)s::text, o.tenant_id, o.group_key)))
              for update skip locked))
  returning w.*),
held as (
  insert into carrick.hold (channel, tenant_id, group_key, batch_id)
  select t.channel, t.tenant_id, t.group_key, m.batch_id from taken t cross join moment m where m.grouped and t.group_key is not null),
leased as (
  insert into carrick.lease (batch_id, token, channel, owner, claimed_at, expires_at, units, troubled, grouped, bytes, seqs, ids, dues)
  select m.batch_id, %(token)s::uuid, t.channel, %(owner)s::text, m.now, m.until, 1, false, m.grouped, t.size, array[t.seq], array[t.id], array[t.due]
    from taken t cross join moment m)
select r.id, r.seq, r.channel, r.tenant_id, r.principal, r.group_key, r.event_type, r.key, r.payload, r.headers, r.payload_size_bytes, r.priority,
       r.traceparent, r.occurred_at, r.created_at, 0, 0, null::jsonb, t.due, m.until, m.seconds::float8, false
  from taken t cross join moment m cross join lateral carrick._record(t.id) r
