-- Remembers the signature of a request; answers no row when it is known, and then the request is a replay.
insert into carrick_ingest_signature (signature, seen_at) values (:signature, (select now from carrick_clock))
on conflict do nothing returning 1
