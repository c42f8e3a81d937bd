-- How long a gate is closed.
select closed_until from carrick_gate where channel = :channel and scope = :scope
