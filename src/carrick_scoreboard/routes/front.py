"""The front page, and how the service stands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec
from aiohttp import web

from carrick.web.headers import CSP, PagePolicy
from carrick.web.probes import liveness, readiness
from carrick.web.routes import Call, Route
from carrick_scoreboard.pages.render import page, render


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """The database answers. Degraded: everything is right and slower, for that reason."""

    status: Literal["ok", "degraded"] = "ok"
    problem: str = ""
    osm_blocked: bool = False
    """OSM has blocked the application: nothing is asked of it until a person says so."""


async def _front(_: Call[Any, Any]) -> web.Response:
    headers = {CSP: PagePolicy().header}
    return web.Response(text=page("Patrol scores", render("front")), content_type="text/html", headers=headers)


def routes(look: Callable[[], Awaitable[Ready]]) -> list[Route]:
    """The routes. `look` raises StoreError when the service cannot work."""
    front = Route(method="GET", path="/", summary="The front page", handle=_front, gives=str)
    return [front, liveness(), readiness(look, Ready())]
