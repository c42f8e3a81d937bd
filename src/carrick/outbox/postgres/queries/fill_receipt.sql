-- Writes down what the request has put; in the transaction that took the key.
update carrick.receipt set ids = %(ids)s::uuid[] where key = %(key)s
