-- Takes batches of nothing but new events: everything they write, in one round trip and one transaction.
select carrick._ingest_new($1::text[], $2::int[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::text[],
                           $9::text[], $10::bytea[], $11::text, $12::uuid[], $13::text[], $14::text[], $15::text[])
