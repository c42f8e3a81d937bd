-- The table of Carrick's with most dead rows, by the server's statistics: nothing is scanned.
select t.relname, t.n_live_tup, t.n_dead_tup
  from pg_stat_user_tables t
 where t.schemaname = 'carrick'
 order by t.n_dead_tup desc, t.relname
 limit 1
