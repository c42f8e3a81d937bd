"""Contacts on SQLite: every operation is one transaction on the file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from carrick.contacts.identity import Identity, IdentityType
from carrick.contacts.sqlite.resolving import PACKAGE, ask, resolve_steps, tell_steps
from carrick.contacts.store import Contact, Request, Resolved
from carrick.outbox.migration import Part
from carrick.outbox.sqlite import migrate
from carrick.outbox.sqlite.database import Database, run
from carrick.outbox.sqlite.failures import named
from carrick.outbox.sqlite.moment import moment, moment_or_none
from carrick.outbox.statement import Steps

PART = Part("contacts", PACKAGE)


class SqliteContacts:
    """The contacts in one SQLite file. Writers take turns, so a resolve sees all that came before."""

    def __init__(self, path: str | Path, channel: str) -> None:
        self._database = Database(path)
        self._channel = channel

    def close(self) -> None:
        self._database.close()

    def check_schema(self) -> None:
        with self._database.read() as connection:
            migrate.check_schema(self._database.path, connection, PART)

    def resolve_steps(self, tenant: str, request: Request) -> Steps[Resolved]:
        return (yield from resolve_steps(self._channel, tenant, [request]))[0]

    def resolve_many_steps(self, tenant: str, requests: Sequence[Request]) -> Steps[list[Resolved]]:
        return (yield from resolve_steps(self._channel, tenant, requests))

    def lock_many_steps(self, tenant: str, requests: Sequence[Request]) -> Steps[None]:
        yield from ()  # there is one writer

    def tell_steps(self, tenant: str, event_type: str, body: dict[str, Any]) -> Steps[None]:
        yield from tell_steps(self._channel, tenant, event_type, body)

    def is_on_steps(self, tenant: str) -> Steps[bool]:
        return bool((yield from named(ask("is_on", tenant=tenant))))

    def resolve(self, tenant: str, request: Request) -> Resolved:
        with self._database.write() as connection:
            return run(connection, self.resolve_steps(tenant, request))

    def contact(self, tenant: str, contact_id: UUID) -> Contact | None:
        with self._database.read() as connection:
            return run(connection, _contact(tenant, str(contact_id)))

    def find(self, tenant: str, identity: Identity) -> UUID | None:
        with self._database.read() as connection:
            wanted = {"type": identity.type.value, "normalised": identity.normalised}
            rows = run(connection, ask("find", tenant=tenant, **wanted))
        return UUID(rows[0][0]) if rows else None

    def turn(self, tenant: str, on: bool) -> bool:
        with self._database.write() as connection:
            return bool(run(connection, ask("turn_on" if on else "turn_off", tenant=tenant)))

    def tenants(self) -> list[tuple[str, datetime]]:
        with self._database.read() as connection:
            return [(tenant, moment(since)) for tenant, since in run(connection, ask("tenants"))]


def _contact(tenant: str, contact_id: str) -> Steps[Contact | None]:
    rows = yield from ask("contact", tenant=tenant, contact=contact_id)
    if not rows:
        return None
    known = yield from ask("identities", contact=contact_id)
    found, of_tenant, traits, created_at, updated_at, merged_into, merged_at, living_id = rows[0]
    return Contact(
        id=UUID(found),
        tenant_id=of_tenant,
        identities=tuple(Identity(IdentityType(kind), value, normalised) for kind, value, normalised in known),
        traits=json.loads(traits),
        created_at=moment(created_at),
        updated_at=moment(updated_at),
        merged_into=None if merged_into is None else UUID(merged_into),
        merged_at=moment_or_none(merged_at),
        living_id=UUID(living_id),
    )
