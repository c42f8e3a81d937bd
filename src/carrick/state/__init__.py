"""Shared key-value state, locks and messages: on Redis where there is one, else in the database."""
