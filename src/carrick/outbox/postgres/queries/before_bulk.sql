-- The clock, sequence numbers and the limits of the channels that a bulk put names; unknown channels are missing.
select now, seqs, channels, max_payload_bytes, bounded from carrick._before_bulk(%(channels)s::text[], %(count)s::int)
