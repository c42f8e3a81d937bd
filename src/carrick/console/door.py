"""Who may see the console and who may act in it. Closed by default; nothing is kept here but counts of wrong tokens.

Programs give ADMIN_TOKEN as a bearer token. A browser gives it once and gets a cookie: a name and an end, signed with a
key made of ADMIN_TOKEN, so it holds on every replica and ends when the token changes. What changes something carries a
mark of that cookie, too, which other sites cannot know.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ipaddress
import math
import secrets
import time
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec
from aiohttp import web

from carrick.web.problems import Problem

COOKIE = "carrick_console"
MARK = "X-Console-Mark"
PATH = "/api/console"
SIGNED_IN_SECONDS = 8 * 3600
MAX_COOKIE = 1_000
MAX_NAME = 60
WRONG_TOKENS = 10
WRONG_SECONDS = 60.0
"""So many wrong tokens from one address in so many seconds; then none is looked at until they are over."""
MOST_ADDRESSES = 10_000
LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


class Person(NamedTuple):
    """Who asks: the name they gave, and the address they come from."""

    name: str
    address: str


class _Pass(msgspec.Struct, frozen=True):
    """What a cookie says. `nonce` makes the marks of two sign-ins differ."""

    name: str
    ends: float
    nonce: str


class WrongTokens:
    """Counts wrong tokens per address; an IPv6 network of /64 is one address."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._windows: dict[str, tuple[float, int]] = {}

    def check(self, address: str) -> None:
        """Raise Problem when there were too many lately."""
        ends, count = self._windows.get(_neighbourhood(address), (0.0, 0))
        left = math.ceil(ends - self._clock())
        if count >= WRONG_TOKENS and left > 0:
            said = f"too many wrong tokens from here; try again in {left} seconds"
            raise Problem(429, "too_many", said, retry_after=left)

    def note(self, address: str) -> None:
        """One more."""
        now, key = self._clock(), _neighbourhood(address)
        ends, count = self._windows.pop(key, (0.0, 0))
        if ends <= now:
            ends, count = now + WRONG_SECONDS, 0
        self._windows[key] = (ends, count + 1)
        while len(self._windows) > MOST_ADDRESSES:
            del self._windows[next(iter(self._windows))]


class Door:
    """Guards the console. `is_demo`: without a token it is open to whoever sits at this machine."""

    def __init__(
        self, *, enabled: bool, token: str, is_demo: bool = False, clock: Callable[[], float] = time.time
    ) -> None:
        self._enabled = enabled
        self._token = _digest(token) if token else b""
        self._is_demo = is_demo
        self._clock = clock
        self._wrong = WrongTokens(clock)
        self._key = _digest(f"carrick console {token}") if token else secrets.token_bytes(32)

    def exists(self, request: web.Request) -> None:
        """Raise Problem unless there is a console here: who may not know of it is told that there is none."""
        if not self._enabled:
            raise Problem(404, "not_found", f"{request.method} {request.path}: Not Found")
        if not self._token and not self._is_open_to(request):
            raise Problem(403, "closed", "ADMIN_TOKEN is not set; without it the console is open in the demo only")

    def look(self, request: web.Request) -> None:
        """Raise Problem unless the request may read."""
        self.exists(request)
        if self._person(request) is None:
            raise Problem(401, "unauthorized", "sign in, or send Authorization: Bearer ADMIN_TOKEN")

    def act(self, request: web.Request) -> None:
        """Raise Problem unless the request may change something, and no other site has made it."""
        self.look(request)
        if "Authorization" in request.headers:
            return  # no other site can make a browser send that
        self._check_origin(request)
        given = request.headers.get(MARK, "")
        if not hmac.compare_digest(_as_sent(given), self.mark(request).encode()):
            raise Problem(403, "forged", f"the header {MARK} is missing or wrong; GET {PATH}/session tells it")

    def person(self, request: web.Request) -> Person | None:
        """Who it is, if they may come in. Raises Problem for wrong tokens."""
        self.exists(request)
        return self._person(request)

    def mark(self, request: web.Request) -> str:
        """What the page must send along with every change."""
        return self._signature("mark", request.cookies.get(COOKIE, "") if self._token else "open")

    def sign_in(self, request: web.Request, token: str, name: str) -> str:
        """The value of the cookie for who gave the right token. Raises Problem for a wrong one."""
        self.exists(request)
        self._check_origin(request)
        self._check_token(request, token)
        said = _Pass(name=name, ends=self._clock() + SIGNED_IN_SECONDS, nonce=secrets.token_urlsafe(12))
        body = base64.urlsafe_b64encode(msgspec.json.encode(said)).decode()
        return f"{body}.{self._signature('pass', body)}"

    def _person(self, request: web.Request) -> Person | None:
        address = request.remote or "unknown"
        if not self._token:
            return Person("demo", address)
        if "Authorization" in request.headers:
            scheme, _, given = request.headers["Authorization"].partition(" ")
            if scheme.lower() != "bearer":
                return None
            self._check_token(request, given.strip())
            return Person("ADMIN_TOKEN", address)
        found = self._pass(request.cookies.get(COOKIE, ""))
        return None if found is None else Person(found.name, address)

    def _check_token(self, request: web.Request, given: str) -> None:
        address = request.remote or "unknown"
        self._wrong.check(address)
        if not self._token or not hmac.compare_digest(_digest(given), self._token):
            self._wrong.note(address)
            raise Problem(401, "unauthorized", "this is not ADMIN_TOKEN")

    def _pass(self, value: str) -> _Pass | None:
        """What a cookie says, if we have signed it and its time is not up."""
        body, _, signature = value.partition(".")
        if len(value) > MAX_COOKIE or not hmac.compare_digest(
            _as_sent(signature), self._signature("pass", body).encode()
        ):
            return None
        try:
            found = msgspec.json.decode(base64.urlsafe_b64decode(body), type=_Pass)
        except (binascii.Error, msgspec.DecodeError):
            return None
        return found if found.ends > self._clock() else None

    def _signature(self, kind: str, text: str) -> str:
        return hmac.new(self._key, f"{kind}:{text}".encode(errors="replace"), hashlib.sha256).hexdigest()

    def _is_open_to(self, request: web.Request) -> bool:
        """In the demo, to a browser at this machine that was not led here by a foreign name or a proxy."""
        forwarded = any(name in request.headers for name in ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host"))
        return self._is_demo and not forwarded and request.remote in LOCAL and _host(request.host) in LOCAL

    def _check_origin(self, request: web.Request) -> None:
        """Raise Problem when the browser says that another site's page has sent this."""
        origin = request.headers.get("Origin")
        site = request.headers.get("Sec-Fetch-Site", "same-origin")
        if site not in ("same-origin", "none") or (origin is not None and urlsplit(origin).netloc != request.host):
            raise Problem(403, "forged", "this was sent by a page of another site")


def _as_sent(text: str) -> bytes:
    """The bytes of a header, whatever they are."""
    return text.encode("utf-8", "surrogateescape")


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="replace")).digest()


def _host(authority: str) -> str:
    """The name in a Host header, without its port."""
    return authority[1:].partition("]")[0] if authority.startswith("[") else authority.partition(":")[0]


def _neighbourhood(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(parsed) if parsed.version == 4 else str(ipaddress.ip_network((int(parsed), 64), strict=False))
