"""Leaders sign in at OSM: GET /admin/login, GET /admin/callback."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from aiohttp import web

from carrick.web.headers import CSP, PagePolicy
from carrick.web.problems import Problem
from carrick.web.routes import Call, Route
from carrick_scoreboard.leaders import Leaders
from carrick_scoreboard.pages import troubles
from carrick_scoreboard.pages.device import Link
from carrick_scoreboard.routes.pages import redirect
from carrick_scoreboard.settings import Rate, ScoreboardSettings
from carrick_scoreboard.sign_in import ADMIN, NotSignedIn, SignIn
from carrick_scoreboard.web_security import Cookies, Limits, new_secret, visitor

BROWSER = "carrick_admin_browser"
"""The cookie of a browser that is on its way to OSM; it is new for every sign-in."""
RATE = Rate(20, 60)
AGAIN = Link("/admin/login", "Sign in again")


def routes(
    settings: ScoreboardSettings, leaders: Leaders, sign_in: SignIn, limits: Limits, now: Callable[[], datetime]
) -> list[Route]:
    """The routes."""
    cookies = Cookies(is_https=settings.is_https)

    async def login(call: Call[Any, Any]) -> web.Response:
        seconds = await limits.wait("admin_login", visitor(call.request, settings), RATE)
        if seconds:
            raise Problem(429, "too_many", f"too many sign-ins; try again in {seconds} seconds", retry_after=seconds)
        holder = new_secret()
        answer = redirect(await sign_in.begin(ADMIN, holder, "scores"))
        cookies.put(answer, BROWSER, holder, seconds=600)
        return answer

    async def callback(call: Call[Any, Any]) -> web.Response:
        try:
            signed_in = await sign_in.finish(ADMIN, cookies.get(call.request, BROWSER), call.request.query)
        except NotSignedIn as refused:
            page, status, retry_after = troubles.not_signed_in(refused, now(), AGAIN)
            headers = {CSP: PagePolicy().header, "Cache-Control": "no-store"}
            if retry_after is not None:
                headers["Retry-After"] = str(retry_after)
            return web.Response(text=page, status=status, content_type="text/html", charset="utf-8", headers=headers)
        answer = redirect(signed_in.path)
        answer.del_cookie(cookies.name(BROWSER), path="/")
        await leaders.sign_in(signed_in.profile.user_id, answer)
        return answer

    return [
        Route(method="GET", path="/admin/login", summary="Sign in at OSM", handle=login, gives=None, status=303),
        Route(
            method="GET",
            path=ADMIN.callback,
            summary="Back from OSM",
            handle=callback,
            gives=None,
            status=303,
            problems=[400, 403, 429, 502, 503],
        ),
    ]
