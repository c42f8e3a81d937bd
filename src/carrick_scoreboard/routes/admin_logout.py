"""Leaders sign out: POST /admin/logout, and GET, which asks first where a page has no mark of the session."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from carrick.web.routes import Call, Route
from carrick_scoreboard.leaders import COOKIE, MARK, Leaders
from carrick_scoreboard.pages import leader as pages
from carrick_scoreboard.routes.pages import friendly, html_answer, redirect
from carrick_scoreboard.routes.parameters import FORM, form_of
from carrick_scoreboard.sealing import KeyRing
from carrick_scoreboard.settings import ScoreboardSettings
from carrick_scoreboard.web_security import Cookies, ForgedForm, Forms

PATH = "/admin/logout"
FORM_NAME = "logout"


class SignOut:
    """The score page brings the session's mark in a header; any other page is led to one with a form."""

    def __init__(self, settings: ScoreboardSettings, leaders: Leaders, keys: KeyRing) -> None:
        self._leaders = leaders
        self._cookies = Cookies(is_https=settings.is_https)
        self._forms = Forms(keys, settings.exposed_domain)

    async def logout(self, call: Call[Any, Any]) -> web.Response:
        if MARK not in call.request.headers:
            return await friendly(self.by_form)(call)
        leader = await self._leaders.require(call.request)
        answer = web.Response(status=204)
        await self._leaders.sign_out(leader, answer)
        return answer

    async def ask(self, request: web.Request) -> web.Response:
        """Only asks."""
        leader, holder = await self._leaders.find(request), self._cookies.get(request, COOKIE)
        if leader is None or holder is None:
            return html_answer(pages.signed_out())
        return html_answer(pages.sign_out(leader.session.osm_user_name, self._forms.mark(holder, FORM_NAME, "")))

    async def by_form(self, request: web.Request) -> web.Response:
        """Either way the page that asks is next: it says, too, that nobody is signed in any more."""
        given = await form_of(request) if request.content_type == FORM else {}
        answer = redirect(PATH)
        try:
            self._forms.check(request, given, self._cookies.get(request, COOKIE), FORM_NAME, "")
        except ForgedForm:
            return answer
        if leader := await self._leaders.find(request):
            await self._leaders.sign_out(leader, answer)
        return answer


def routes(settings: ScoreboardSettings, leaders: Leaders, keys: KeyRing) -> list[Route]:
    """The routes."""
    out = SignOut(settings, leaders, keys)
    return [
        Route(method="GET", path=PATH, summary="Sign out?", handle=friendly(out.ask), gives=str, problems=[503]),
        Route(
            method="POST",
            path=PATH,
            summary="Sign out here; without a mark, on to the page that asks",
            handle=out.logout,
            gives=None,
            status=204,
            problems=[303, 401, 403],
        ),
    ]
