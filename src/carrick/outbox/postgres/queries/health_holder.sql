-- Who holds back vacuum longest: a session of this database, a prepared transaction or a replication slot. Rows that died
-- after its transaction began must stay until it ends. What a session runs is not shown: there may be secrets in it.
select h.who, h.seconds, h.transactions
  from (select format('session of user %s, pid %s, application %s, from %s, %s', coalesce(a.usename, '?'), a.pid,
                      coalesce(nullif(a.application_name, ''), 'without a name'),
                      coalesce(host(a.client_addr), 'the server itself'), coalesce(a.state, 'state not ours to see')) as who,
               extract(epoch from clock_timestamp() - a.xact_start)::double precision as seconds,
               greatest(age(a.backend_xid), age(a.backend_xmin)) as transactions
          from pg_stat_activity a
         where a.pid <> pg_backend_pid() and (a.datname = current_database() or a.datname is null)
           and a.backend_type in ('client backend', 'background worker', 'walsender')
           and coalesce(a.backend_xid, a.backend_xmin) is not null
         union all
        select format('prepared transaction %s of %s', p.gid, p.owner),
               extract(epoch from clock_timestamp() - p.prepared)::double precision, age(p.transaction)
          from pg_prepared_xacts p
         where p.database = current_database()
         union all
        select format('replication slot %s', s.slot_name), null, age(s.xmin)
          from pg_replication_slots s
         where s.xmin is not null) h
 order by h.transactions desc, h.seconds desc nulls last
 limit 1
