"""What every form of the scoreboard is protected by: cookies, marks on forms, limits."""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Mapping

import msgspec
from aiohttp import web

from carrick.state.kv import Kv
from carrick.web.addresses import Visitor, visitor_of
from carrick_scoreboard.sealing import KeyRing
from carrick_scoreboard.settings import Rate, ScoreboardSettings

SECRET = re.compile(r"[A-Za-z0-9_-]{43}")


class Cookies:
    """Cookies that scripts and other sites cannot see; on https no other host can plant them either."""

    def __init__(self, *, is_https: bool) -> None:
        self._is_https = is_https

    def name(self, kind: str) -> str:
        """The name that the browser knows: `__Host-` makes it insist on https, on this host and on all paths."""
        return f"__Host-{kind}" if self._is_https else kind

    def get(self, request: web.Request, kind: str) -> str | None:
        """The secret that the browser has sent, if it is one."""
        value = request.cookies.get(self.name(kind), "")
        return value if is_secret(value) else None

    def put(self, response: web.Response, kind: str, value: str, *, seconds: int | None = None) -> None:
        """Give it to the browser, for so long or until it closes."""
        response.set_cookie(
            self.name(kind), value, max_age=seconds, path="/", secure=self._is_https, httponly=True, samesite="Lax"
        )


class ForgedForm(Exception):
    """A form that did not come from a page that this browser was shown."""


class Forms:
    """Marks on forms. A mark holds for one browser, one form and one matter; it is checked in constant time."""

    FIELD = "csrf"

    def __init__(self, keys: KeyRing, exposed_domain: str) -> None:
        self._keys = keys
        self._origin = exposed_domain

    def mark(self, holder: str, form: str, matter: str) -> str:
        """For the form's hidden field; `holder` is the secret in the browser's cookie."""
        return self._keys.mark(_bound(holder, form, matter), self.FIELD)

    def check(self, request: web.Request, given: Mapping[str, str], holder: str | None, form: str, matter: str) -> None:
        """Raise ForgedForm unless the mark is the one that this browser got for this form and matter."""
        if not self._is_own_page(request) or holder is None:
            raise ForgedForm
        if not self._keys.is_marked(given.get(self.FIELD, ""), _bound(holder, form, matter), self.FIELD):
            raise ForgedForm

    def _is_own_page(self, request: web.Request) -> bool:
        """What the browser says about where the form stood. `null` is what it says on pages without referrer."""
        site = request.headers.get("Sec-Fetch-Site", "same-origin")
        return site in ("same-origin", "none") and request.headers.get("Origin", "null") in ("null", self._origin)


def _bound(holder: str, form: str, matter: str) -> str:
    return msgspec.json.encode((holder, form, matter)).decode()


def new_secret() -> str:
    """256 bits."""
    return secrets.token_urlsafe(32)


def is_secret(text: str) -> bool:
    """Whether it has the form of one."""
    return SECRET.fullmatch(text) is not None


class Limits:
    """So many requests in so many seconds from one visitor, counted by all replicas together.

    A window begins with the first request and ends by itself; what is refused does not make it longer.
    """

    def __init__(self, kv: Kv) -> None:
        self._kv = kv

    async def wait(self, what: str, visitor: Visitor, rate: Rate) -> int:
        """Count one more; 0 when it is welcome, else the seconds until the next one is."""
        count = await self._kv.increment(f"limit:{what}:{visitor.neighbourhood}", ttl=rate.seconds)
        return 0 if count.sum <= rate.count else max(1, min(rate.seconds, math.ceil(count.ends_in)))


def visitor(request: web.Request, settings: ScoreboardSettings) -> Visitor:
    """Who has sent this request."""
    return visitor_of(
        request.remote,
        request.headers.getall("X-Forwarded-For", []),
        request.headers.getall(settings.country_header, []),
        settings.trusted_proxies,
    )
