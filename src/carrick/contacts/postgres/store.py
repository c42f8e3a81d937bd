"""Contacts on PostgreSQL: every operation is one call of a function in schema `carrick`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from carrick.contacts.identity import Identity, IdentityType
from carrick.contacts.store import Contact, Request, Resolved
from carrick.outbox.migration import Part
from carrick.outbox.postgres import migrate
from carrick.outbox.postgres.connections import Connections, run
from carrick.outbox.postgres.failures import named
from carrick.outbox.statement import Row, Statement, Steps, query

PACKAGE = "carrick.contacts.postgres"
PART = Part("contacts", PACKAGE)
COMPAT = Part("contacts-compat", PACKAGE, "compat")
"""The view of identities for those who write them themselves (`--compat`)."""

T = TypeVar("T")


class PostgresContacts:
    """The contacts in one PostgreSQL database. Its own transactions name their tenant to row-level security."""

    def __init__(self, dsn: str, channel: str) -> None:
        self._connections = Connections(dsn)
        self._channel = channel

    def close(self) -> None:
        self._connections.close()

    def check_schema(self) -> None:
        with self._connections.connection() as connection:
            migrate.check_schema(connection, PART)

    def resolve_steps(self, tenant: str, request: Request) -> Steps[Resolved]:
        params = {"tenant": tenant, "channel": self._channel, "traits": request.traits.decode()}
        params["identities"] = json.dumps(_told(request.identities))
        rows = yield from named(_ask("resolve", **params))
        return _resolved(rows[0])

    def resolve_many_steps(self, tenant: str, requests: Sequence[Request]) -> Steps[list[Resolved]]:
        if not requests:
            return []
        asked = _asked(requests)
        rows = yield from named(_ask("resolve_many", tenant=tenant, channel=self._channel, requests=asked))
        return [_resolved(row) for row in rows]

    def lock_many_steps(self, tenant: str, requests: Sequence[Request]) -> Steps[None]:
        yield from named(_ask("lock_many", tenant=tenant, requests=_asked(requests)))

    def tell_steps(self, tenant: str, event_type: str, body: dict[str, Any]) -> Steps[None]:
        told = json.dumps(body)
        yield from named(_ask("tell", tenant=tenant, channel=self._channel, event_type=event_type, body=told))

    def is_on_steps(self, tenant: str) -> Steps[bool]:
        return bool((yield from named(_ask("is_on", tenant=tenant))))

    def resolve(self, tenant: str, request: Request) -> Resolved:
        return self._run(tenant, self.resolve_steps(tenant, request))

    def contact(self, tenant: str, contact_id: UUID) -> Contact | None:
        return self._run(tenant, _contact(tenant, contact_id))

    def find(self, tenant: str, identity: Identity) -> UUID | None:
        rows = self._run(tenant, _ask("find", tenant=tenant, type=identity.type.value, normalised=identity.normalised))
        return rows[0][0] if rows else None

    def turn(self, tenant: str, on: bool) -> bool:
        return bool(self._run(tenant, _ask("turn_on" if on else "turn_off", tenant=tenant)))

    def tenants(self) -> list[tuple[str, datetime]]:
        return [(tenant, since) for tenant, since in self._run("", _ask("tenants"))]

    def _run(self, tenant: str, steps: Steps[T]) -> T:
        with self._connections.connection() as connection, connection.transaction():
            run(connection, _ask("be_tenant", tenant=tenant))
            return run(connection, steps)


def _ask(name: str, **params: Any) -> Steps[list[Row]]:
    """The rows of queries/<name>.sql."""
    return (yield Statement(query(PACKAGE, name), params))


def _contact(tenant: str, contact_id: UUID) -> Steps[Contact | None]:
    rows = yield from _ask("contact", tenant=tenant, contact=contact_id)
    if not rows:
        return None
    known = yield from _ask("identities", contact=contact_id)
    found, of_tenant, traits, created_at, updated_at, merged_into, merged_at, living_id = rows[0]
    return Contact(
        id=found,
        tenant_id=of_tenant,
        identities=tuple(Identity(IdentityType(kind), value, normalised) for kind, value, normalised in known),
        traits=msgspec.json.decode(traits),
        created_at=created_at,
        updated_at=updated_at,
        merged_into=merged_into,
        merged_at=merged_at,
        living_id=living_id,
    )


def _resolved(row: Row) -> Resolved:
    contact_id, created, merged, conflicts = row
    return Resolved(contact_id=contact_id, created=created, merged=tuple(merged), conflicts=tuple(conflicts))


def _asked(requests: Iterable[Request]) -> str:
    each = (
        f'{{"identities":{json.dumps(_told(request.identities))},"traits":{request.traits.decode()}}}'
        for request in requests
    )
    return f"[{','.join(each)}]"


def _told(identities: Iterable[Identity]) -> list[dict[str, str]]:
    return [{"type": identity.type, "value": identity.value} for identity in identities]
