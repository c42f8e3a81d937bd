-- Takes a key for this request: a row when it is new. Waits for another transaction that is taking it at the moment.
insert into carrick.receipt (key, body_hash) values (%(key)s, %(body_hash)s) on conflict do nothing returning key
