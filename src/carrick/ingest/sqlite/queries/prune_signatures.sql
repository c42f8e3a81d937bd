-- Forgets signatures that are no longer accepted anyway; PostgreSQL's prune does it itself.
delete from carrick_ingest_signature where seen_at < :before
