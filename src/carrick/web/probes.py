"""What every service answers about itself: that it lives, that it is ready, and what it can be asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
from aiohttp import web

from carrick.errors import StoreError
from carrick.web.openapi import document
from carrick.web.problems import Problem
from carrick.web.routes import Call, Route, as_json


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The process lives."""

    status: str = "ok"


def liveness() -> Route:
    """200 while the process lives."""

    async def health(_: Call[Any, Any]) -> Health:
        return Health()

    return Route(method="GET", path="/api/health", summary="Liveness", handle=health, gives=Health)


def readiness(check: Callable[[], Awaitable[msgspec.Struct | None]], answer: msgspec.Struct) -> Route:
    """`answer`, or what the check gives instead (of its type); 503 with the reason when it raises StoreError."""

    async def ready(_: Call[Any, Any]) -> msgspec.Struct:
        try:
            found = await check()
        except StoreError as error:
            raise Problem(503, "not_ready", str(error)) from None
        return answer if found is None else found

    return Route(
        method="GET",
        path="/api/ready",
        summary="Readiness: the database answers",
        handle=ready,
        gives=type(answer),
        problems=[503],
    )


def described(title: str, description: str, routes: Sequence[Route]) -> list[Route]:
    """The routes, and one more that describes them."""
    text = document(title, description, routes)

    async def openapi(_: Call[Any, Any]) -> web.Response:
        return as_json(text)

    own = Route(method="GET", path="/api/openapi.json", summary="This document", handle=openapi, gives=dict[str, Any])
    return [*routes, own]
