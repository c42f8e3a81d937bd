"""The inbox in an SQLite file."""
