"""Who may see the console and who may act in it. Closed by default; nothing is kept here but who has signed out.

Programs give ADMIN_TOKEN as a bearer token. A browser gives it once and gets a cookie: a name and an end, signed with a
key made of ADMIN_TOKEN, so it holds on every replica and ends when the token changes. What changes something carries a
mark of that cookie, too, which other sites cannot know.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec
from aiohttp import web

from carrick.web.problems import Problem
from carrick.web.tokens import AdminToken

COOKIE = "carrick_console"
MARK = "X-Console-Mark"
PATH = "/api/console"
SIGNED_IN_SECONDS = 8 * 3600
MAX_COOKIE = 1_000
MAX_NAME = 60


class Person(NamedTuple):
    """Who asks: the name they gave, and the address they come from."""

    name: str
    address: str


class _Pass(msgspec.Struct, frozen=True):
    """What a cookie says. `nonce` makes the marks of two sign-ins differ."""

    name: str
    ends: float
    nonce: str


class Door:
    """Guards the console. `is_demo`: without a token it is open to whoever sits at this machine.

    A sign-out is remembered by this process: on other replicas, and after a restart, the cookie ends by its time.
    """

    def __init__(
        self, token: AdminToken, *, enabled: bool, is_demo: bool = False, clock: Callable[[], float] = time.time
    ) -> None:
        self._token = token
        self._enabled = enabled
        self._is_demo = is_demo
        self._clock = clock
        self._key = token.key("carrick console")
        self._signed_out: dict[str, float] = {}
        """Nonces of passes that were given back, and when they would have ended."""

    def exists(self, request: web.Request) -> None:
        """Raise Problem unless there is a console here: who may not know of it is told that there is none."""
        if not self._enabled:
            raise Problem(404, "not_found", f"{request.method} {request.path}: Not Found")
        if not self._token.is_set and not (self._is_demo and self._token.is_local(request)):
            raise Problem(403, "closed", "ADMIN_TOKEN is not set; without it the console is open in the demo only")

    def look(self, request: web.Request) -> None:
        """Raise Problem unless the request may read."""
        self.exists(request)
        if self._person(request) is None:
            raise Problem(401, "unauthorized", "sign in, or send Authorization: Bearer ADMIN_TOKEN")

    def act(self, request: web.Request) -> None:
        """Raise Problem unless the request may change something, and our own page, or a program, has made it."""
        self.look(request)
        if "Authorization" in request.headers:
            return  # no other site can make a browser send that
        given = request.headers.get(MARK, "")
        if not hmac.compare_digest(_as_sent(given), self.mark(request).encode()):
            raise Problem(403, "forged", f"the header {MARK} is missing or wrong; GET {PATH}/session tells it")

    def person(self, request: web.Request) -> Person | None:
        """Who it is, if they may come in. Raises Problem for wrong tokens."""
        self.exists(request)
        return self._person(request)

    def mark(self, request: web.Request) -> str:
        """What the page must send along with every change."""
        return self._signature("mark", request.cookies.get(COOKIE, "") if self._token.is_set else "open")

    def sign_in(self, request: web.Request, token: str, name: str) -> str:
        """The value of the cookie for who gave the right token. Raises Problem for a wrong one."""
        self.exists(request)
        self._token.check(request, token)
        said = _Pass(name=name, ends=self._clock() + SIGNED_IN_SECONDS, nonce=secrets.token_urlsafe(12))
        body = base64.urlsafe_b64encode(msgspec.json.encode(said)).decode()
        return f"{body}.{self._signature('pass', body)}"

    def sign_out(self, request: web.Request) -> None:
        """The cookie that was sent lets nobody in any more."""
        found = self._pass(request.cookies.get(COOKIE, ""))
        if found is not None:
            now = self._clock()
            self._signed_out = {nonce: ends for nonce, ends in self._signed_out.items() if ends > now}
            self._signed_out[found.nonce] = found.ends

    def _person(self, request: web.Request) -> Person | None:
        address = self._token.visitor(request).address
        if not self._token.is_set:
            return Person("demo", address)
        if "Authorization" in request.headers:
            return Person("ADMIN_TOKEN", address) if self._token.is_right(request) else None
        found = self._pass(request.cookies.get(COOKIE, ""))
        return None if found is None else Person(found.name, address)

    def _pass(self, value: str) -> _Pass | None:
        """What a cookie says, if we have signed it, its time is not up and nobody has signed out with it."""
        body, _, signature = value.partition(".")
        if len(value) > MAX_COOKIE or not hmac.compare_digest(
            _as_sent(signature), self._signature("pass", body).encode()
        ):
            return None
        try:
            found = msgspec.json.decode(base64.urlsafe_b64decode(body), type=_Pass)
        except (binascii.Error, msgspec.DecodeError):
            return None
        return found if found.ends > self._clock() and found.nonce not in self._signed_out else None

    def _signature(self, kind: str, text: str) -> str:
        return hmac.new(self._key, f"{kind}:{text}".encode(errors="replace"), hashlib.sha256).hexdigest()


def _as_sent(text: str) -> bytes:
    """The bytes of a header, whatever they are."""
    return text.encode("utf-8", "surrogateescape")
