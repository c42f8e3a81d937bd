-- Takes a batch: everything it writes, in one round trip and one transaction. Parameters as the server counts them.
select replayed, stored, array_to_json(new_ids)::text
  from carrick.ingest_batch($1::text, $2::text, $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::text[], $8::text[],
                            $9::bytea, $10::text, $11::uuid[], $12::text[], $13::text[], $14::text[])
