"""Contacts as values, and what a database must be able to do with them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

import msgspec

from carrick.contacts.identity import Identity
from carrick.outbox.statement import Steps


class Request(msgspec.Struct, frozen=True):
    """One resolve, checked: identities with the strongest first, traits as JSON text."""

    identities: tuple[Identity, ...]
    traits: bytes


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a resolve.

    `merged` are the contacts that became part of it just now; `conflicts` those that stay apart because they have
    another external id.
    """

    contact_id: UUID
    created: bool
    merged: tuple[UUID, ...] = ()
    conflicts: tuple[UUID, ...] = ()


class Contact(msgspec.Struct, frozen=True, kw_only=True):
    """A contact. A tombstone has `merged_into` and no identities; `living_id` is what it has become in the end."""

    id: UUID
    tenant_id: str
    identities: tuple[Identity, ...]
    traits: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    merged_into: UUID | None
    merged_at: datetime | None
    living_id: UUID


class ContactStore(Protocol):
    """Contacts in one database. What ends in `_steps` runs in a transaction that somebody else has opened."""

    def close(self) -> None:
        """Give back all connections."""

    def check_schema(self) -> None:
        """Raise SchemaMissing, SchemaOutdated or SchemaTooNew unless the tables are those of this release."""

    def resolve_steps(self, tenant: str, request: Request) -> Steps[Resolved]:
        """Find, make or merge the one contact, and put the events."""

    def resolve_many_steps(self, tenant: str, requests: Sequence[Request]) -> Steps[list[Resolved]]:
        """One after the other; no two such calls can wait for each other in a circle."""

    def lock_many_steps(self, tenant: str, requests: Sequence[Request]) -> Steps[None]:
        """Take the locks of all these resolves, for a transaction that makes them by more than one call."""

    def tell_steps(self, tenant: str, event_type: str, body: dict[str, Any]) -> Steps[None]:
        """Put one event that is about no contact."""

    def is_on_steps(self, tenant: str) -> Steps[bool]:
        """Whether the tenant's events are resolved on arrival."""

    def resolve(self, tenant: str, request: Request) -> Resolved:
        """As `resolve_steps`, in a transaction of its own. Raises a StoreError."""

    def contact(self, tenant: str, contact_id: UUID) -> Contact | None:
        """The contact with that id, a tombstone as well."""

    def find(self, tenant: str, identity: Identity) -> UUID | None:
        """The living contact that the identity belongs to."""

    def turn(self, tenant: str, on: bool) -> bool:
        """Turn the resolving of ingested events on or off; whether that changed anything."""

    def tenants(self) -> list[tuple[str, datetime]]:
        """The tenants that have it on, and since when."""
