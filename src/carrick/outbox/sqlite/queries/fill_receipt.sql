-- Takes a key and writes down what its request has put. There is one writer, so nobody takes the key meanwhile: no
-- take_receipt.sql is needed here.
insert into carrick_receipt (key, body_hash, ids, made_at)
values (:key, :body_hash, :ids, (select now from carrick_clock))
