-- Whether these points are neither applied nor discarded; until the transaction ends nobody else applies, discards or tries them.
select id from carrick.score_updates where entry_id = %(entry_id)s and applied_at is null and discarded_at is null
   for no key update
