"""Destinations: each sink hands a batch to one kind of other side and reports what became of it."""
