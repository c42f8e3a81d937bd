-- Writes the lease of a batch.
insert into carrick_lease (token, batch_id, channel, owner, claimed_at, expires_at, units, troubled)
values (:token, (select coalesce(max(l.batch_id), 0) + 1 from carrick_lease as l), :channel, :owner, :now, :expires_at,
        :units, :troubled)
returning batch_id
