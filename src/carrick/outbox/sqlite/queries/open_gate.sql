-- Opens a gate.
delete from carrick_gate where channel = :channel and scope = :scope
