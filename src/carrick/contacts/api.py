"""POST /api/v1/contacts/resolve, for a service to mount with its own guards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any
from uuid import UUID

import msgspec
from aiohttp import web
from msgspec import Meta

from carrick.contacts.contacts import Contacts
from carrick.contacts.identity import MOST_IDENTITIES, MOST_TRAIT_BYTES
from carrick.contacts.store import Resolved
from carrick.relay.threads import Threads
from carrick.web.objects import RawObject, no_object, object_in
from carrick.web.routes import Call, Route


class GivenIdentity(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One identity; `type` is external_id, email, phone or anonymous_id."""

    type: str
    value: str


class ResolveBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Who is meant, and what is known of them. A trait that is null is removed."""

    tenant_id: Annotated[str, Meta(min_length=1, max_length=255)]
    identities: Annotated[list[GivenIdentity], Meta(min_length=1, max_length=MOST_IDENTITIES)]
    traits: RawObject = no_object()


class ResolveAnswer(msgspec.Struct, kw_only=True):
    """The one contact; `merged` are those that became part of it just now."""

    contact_id: UUID
    created: bool
    merged: tuple[UUID, ...]


Resolve = Callable[[web.Request, str, list[tuple[str, str]], dict[str, Any]], Resolved]
"""As `Contacts.resolve`, for a request. Called in a thread."""


def routes(
    contacts: Contacts,
    threads: Threads,
    *,
    guards: Sequence[Callable[[web.Request], None]] = (),
    body_guards: Sequence[Callable[[web.Request, bytes], None]] = (),
    resolve: Resolve | None = None,
) -> list[Route]:
    """The endpoints of contacts. The guards look at each request first, and at its body, and raise a Problem.

    `resolve` is what a service does instead of `contacts.resolve` alone.
    """
    do = resolve or (lambda _, *asked: contacts.resolve(*asked))

    async def resolve_contact(call: Call[None, ResolveBody]) -> ResolveAnswer:
        body = call.body
        identities = [(given.type, given.value) for given in body.identities]
        traits = object_in("traits", body.traits, MOST_TRAIT_BYTES) or {}
        found = await threads.call(do, call.request, body.tenant_id, identities, traits)
        return ResolveAnswer(contact_id=found.contact_id, created=found.created, merged=found.merged)

    return [
        Route(
            method="POST",
            path="/api/v1/contacts/resolve",
            summary="Find, make or merge the one contact that identities belong to",
            handle=resolve_contact,
            takes=ResolveBody,
            gives=ResolveAnswer,
            problems=[400, 401, 408, 413, 415, 503, 507],
            guards=guards,
            body_guards=body_guards,
        )
    ]
