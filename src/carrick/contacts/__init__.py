"""Contacts and their identities: one contact per person and tenant, whatever names the events know them by."""
