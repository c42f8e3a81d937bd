"""The rules every store keeps, by theme; `carrick.testing.StoreContract` is all of them together."""
