-- Counts live bytes of a bounded channel; others have no row here.
update carrick_backlog set bytes = bytes + :bytes where channel = :channel
