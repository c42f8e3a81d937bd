"""GET /api/v1/patrols: the scores of a device's section."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

import msgspec
from aiohttp import web

from carrick.web.routes import Call, Route, as_json
from carrick_scoreboard.admission import Admission, unauthorized
from carrick_scoreboard.moments import whole_second
from carrick_scoreboard.patrols.decision import Error
from carrick_scoreboard.patrols.patrols import Patrols, Refused, Scores

PATH = "/api/v1/patrols"

ERRORS: dict[Error, tuple[int, str]] = {
    "blocked": (403, "Authorization revoked by OSM: sign in again to go on"),
    "section_not_found": (400, "The section is not one that the device's owner sees in OSM"),
    "not_in_term": (409, "Section is not currently in an active term"),
    "rate_limited": (429, "Too many requests, retry after {seconds} seconds"),
    "service_blocked": (503, "Service blocked by OSM: an operator must resolve it"),
    "upstream_error": (502, "Failed to fetch data from OSM"),
    "internal_error": (500, "Failed to process OSM response"),
}
"""What each reason answers. Where it is known when to come again, `Retry-After` says so."""


class Trouble(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why there are no scores; the last two only when OSM limits the user."""

    error: str
    message: str
    retry_after: int | None = None
    blocked_until: datetime | None = None


def routes(
    patrols: Patrols, admission: Admission, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> list[Route]:
    """The route."""

    async def patrol_scores(call: Call[Any, Any]) -> web.Response:
        device = await admission.device(call.headers.get("Authorization"))
        if device is None:
            return too_often(admission, call.request, now()) or unauthorized()
        try:
            served = await patrols.scores(device, lately=True)
        except Refused as refused:
            limited = too_often(admission, call.request, now()) if refused.error == "blocked" else None
            return limited or refusal(refused, now())
        headers = {"X-Cache": "MISS" if served.waited else "HIT"}
        return web.Response(body=served.body, content_type="application/json", headers=headers)

    return [
        Route(
            method="GET",
            path=PATH,
            summary="The patrol scores of the device's section",
            handle=patrol_scores,
            gives=Scores,
            problems=[400, 401, 403, 409, 429, 500, 502, 503],
        )
    ]


def too_often(admission: Admission, request: web.Request, now: datetime) -> web.Response | None:
    """The answer to who is refused once more, although it has been told why often enough."""
    seconds = admission.wait(request)
    return refusal(Refused("rate_limited", now + timedelta(seconds=seconds)), now) if seconds else None


def refusal(refused: Refused, now: datetime) -> web.Response:
    """The answer that says why there are no scores."""
    status, message = ERRORS[refused.error]
    seconds = None if refused.until is None else max(1, ceil((refused.until - now).total_seconds()))
    limited = refused.error == "rate_limited"
    body = Trouble(
        error=refused.error,
        message=message.format(seconds=seconds),
        retry_after=seconds if limited else None,
        blocked_until=whole_second(refused.until) if limited and refused.until is not None else None,
    )
    answer = as_json(body, status)
    if seconds is not None:
        answer.headers["Retry-After"] = str(seconds)
    return answer
