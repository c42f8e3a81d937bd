-- Writes down the intent of a delivery, and the entries that it is about (null: all); fenced by the lease's token.
update carrick_lease set intent = :intent, noted = :noted where token = :token
