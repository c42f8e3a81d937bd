-- Opens a gate; with `closed_by` only one that was closed by that, or whose time is up.
delete from carrick_gate
 where channel = :channel and scope = :scope
   and (:closed_by is null or closed_by = :closed_by or closed_until <= (select now from carrick_clock))
