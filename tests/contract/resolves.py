"""Short names for what sessions of PostgreSQL do in tests of resolves."""

from __future__ import annotations

import json
from uuid import UUID

from carrick.testing.interleaving import Session, Step

RESOLVE = "select contact_id, created, merged, conflicts from carrick.resolve_contact(%s, %s, %s)"
MANY = "select contact_id from carrick.resolve_contacts(%s, %s)"
EVENTS = "select event_type from carrick.record where channel = 'events' order by seq"
TENANT = "acme"


def identities(*names: str) -> str:
    """Anonymous ids as the function takes them; `x:NAME` is an external id, `NAME@` an e-mail address."""
    return json.dumps([_identity(name) for name in names])


def _identity(name: str) -> dict[str, str]:
    if name.startswith("x:"):
        return {"type": "external_id", "value": name}
    if name.endswith("@"):
        return {"type": "email", "value": f"{name}example.org"}
    return {"type": "anonymous_id", "value": name}


def resolve(session: Session, *names: str, traits: str = "{}") -> UUID:
    contact_id: UUID = session.run(RESOLVE, TENANT, identities(*names), traits)[0][0]
    return contact_id


def start(session: Session, *names: str, traits: str = "{}") -> Step:
    return session.start(RESOLVE, TENANT, identities(*names), traits)


def start_many(session: Session, *requests: tuple[str, ...]) -> Step:
    return start_traits(session, *((names, {}) for names in requests))


def start_traits(session: Session, *requests: tuple[tuple[str, ...], dict[str, int]]) -> Step:
    """A batch of names with traits."""
    told = [{"identities": json.loads(identities(*names)), "traits": traits} for names, traits in requests]
    return session.start(MANY, TENANT, json.dumps(told))


def events(session: Session) -> list[str]:
    return [kind.removeprefix("contact.").removesuffix(".v1") for (kind,) in session.run(EVENTS)]


def living(session: Session) -> set[UUID]:
    return {row[0] for row in session.run("select id from carrick.contacts where merged_into is null")}
