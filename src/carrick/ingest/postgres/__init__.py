"""The inbox in a PostgreSQL database: its operations are functions in schema `carrick`."""
