-- Remembers the signature of a request that is no batch; answers no row when it is known, and then the request is a replay. Waits
-- for another that is just being served. `ingest_batch` remembers that of a batch in the same way, by itself.
insert into carrick.ingest_signature (signature, seen_at) values (%(signature)s::bytea, carrick.clock())
on conflict do nothing returning 1
