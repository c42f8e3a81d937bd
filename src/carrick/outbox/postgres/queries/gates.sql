-- Gates that are closed now; null closed_until means until opened.
select channel, scope, nullif(closed_until, 'infinity'), reason, consecutive_failures, closed_by
  from carrick.gate
 where closed_until > carrick.clock() and (%(channel)s::text is null or channel = %(channel)s::text)
 order by channel, scope
