-- The closed gates of a channel.
select scope from carrick_gate where channel = :channel and closed_until > :now
