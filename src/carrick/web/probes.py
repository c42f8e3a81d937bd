"""What every service answers about itself: that it lives, that it is ready, and what it can be asked."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
from aiohttp import web

from carrick.errors import (
    DiskFull,
    SchemaMissing,
    SchemaOutdated,
    SchemaTooNew,
    StoreBusy,
    StoreError,
    StoreReadOnly,
    StoreUnavailable,
)
from carrick.web.openapi import document
from carrick.web.problems import Problem
from carrick.web.routes import Call, Route, as_json

log = logging.getLogger("carrick.web")


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The process lives."""

    status: str = "ok"


def liveness() -> Route:
    """200 while the process lives."""

    async def health(_: Call[Any, Any]) -> Health:
        return Health()

    return Route(method="GET", path="/api/health", summary="Liveness", handle=health, gives=Health)


REASONS: tuple[tuple[type[StoreError], str], ...] = (
    (SchemaMissing, "the database has no Carrick schema; run: carrick migrate"),
    (SchemaOutdated, "the database has the schema of an older release; run: carrick migrate"),
    (SchemaTooNew, "the database has the schema of a newer release; upgrade Carrick"),
    (StoreReadOnly, "the database cannot be written"),
    (DiskFull, "the database has no room left"),
    (StoreBusy, "the database is held by somebody else for too long"),
    (StoreUnavailable, "the database does not answer"),
    (StoreError, "the database cannot be used"),
)
"""What anybody may know of a database that cannot be used; the first that fits. Where it is stands in the log only."""


def readiness(check: Callable[[], Awaitable[msgspec.Struct | None]], answer: msgspec.Struct) -> Route:
    """`answer`, or what the check gives instead (of its type); 503 with the reason when it raises StoreError."""
    told = ""

    async def ready(_: Call[Any, Any]) -> msgspec.Struct:
        nonlocal told
        try:
            found = await check()
        except StoreError as error:
            if str(error) != told:  # probes come every few seconds
                told = str(error)
                log.warning("web.not_ready", extra={"error": told})
            raise Problem(503, "not_ready", _reason(error)) from None
        told = ""
        return answer if found is None else found

    return Route(
        method="GET",
        path="/api/ready",
        summary="Readiness: the database answers",
        handle=ready,
        gives=type(answer),
        problems=[503],
    )


def _reason(error: StoreError) -> str:
    return next(reason for kind, reason in REASONS if isinstance(error, kind))


def described(title: str, description: str, routes: Sequence[Route]) -> list[Route]:
    """The routes, and one more that describes them."""
    text = document(title, description, routes)

    async def openapi(_: Call[Any, Any]) -> web.Response:
        return as_json(text)

    own = Route(method="GET", path="/api/openapi.json", summary="This document", handle=openapi, gives=dict[str, Any])
    return [*routes, own]
