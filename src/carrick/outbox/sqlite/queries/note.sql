-- Writes down the intent of a delivery; fenced by the lease's token.
update carrick_lease set intent = :intent where token = :token
