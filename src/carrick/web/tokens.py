"""ADMIN_TOKEN, as every service asks for it.

The right token is compared before anything is refused, so the guesses of others never lock its owner out. Guesses are
held off by its length; the limit only keeps the log and the answers short.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Callable, Sequence

from aiohttp import web

from carrick.variables import Network
from carrick.web import figures
from carrick.web.addresses import Visitor, among, parsed, visitor_of
from carrick.web.problems import Problem
from carrick.web.windows import Windows

log = logging.getLogger("carrick.web")

WRONG_TOKENS = 10
WRONG_SECONDS = 60.0
"""So many wrong tokens from one address in so many seconds; then a wrong one is told to wait."""
FORWARDED = ("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP")
"""What a proxy adds to a request."""


class AdminToken:
    """Guards endpoints; one for a whole service. Without a token they are open to this machine, where they say so."""

    def __init__(
        self, token: str, trusted: Sequence[Network] = (), *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._digest = _digest(token) if token else None
        self._trusted = trusted
        self._wrong = Windows(WRONG_SECONDS, clock=clock)

    @property
    def is_set(self) -> bool:
        """Whether there is one at all."""
        return self._digest is not None

    def admit(self, request: web.Request) -> None:
        """Raise Problem unless the request brings the token, or comes from this machine where there is none."""
        if not self.is_set:
            if not self.is_local(request):
                said = "ADMIN_TOKEN is not set; without it this is open to this machine only, and to no proxy"
                raise Problem(401, "unauthorized", said)
        elif not self.is_right(request):
            raise Problem(401, "unauthorized", "accepted: Authorization: Bearer ADMIN_TOKEN")

    def is_right(self, request: web.Request) -> bool:
        """Whether the request brings the token; False when it brings none. Raises Problem for a wrong one."""
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return False
        self.check(request, given.strip())
        return True

    def check(self, request: web.Request, given: str) -> None:
        """Raise Problem unless this is the token: 401, and 429 once there were many wrong ones from that address."""
        if self._digest is not None and hmac.compare_digest(_digest(given), self._digest):
            return
        figures.WRONG_TOKENS.inc()
        who = self.visitor(request)
        count, left = self._wrong.count(who.neighbourhood)
        if count > WRONG_TOKENS:
            said = f"too many wrong tokens from here; try again in {left} seconds"
            raise Problem(429, "too_many", said, retry_after=left)
        log.warning("web.wrong_token", extra={"address": who.address, "path": request.path, "count": count})
        raise Problem(401, "unauthorized", "this is not ADMIN_TOKEN")

    def key(self, purpose: str) -> bytes:
        """A key for signatures: the same on every replica, another for another token; of chance where there is none."""
        if self._digest is None:
            return secrets.token_bytes(32)
        return hmac.digest(self._digest, purpose.encode(), "sha256")

    def visitor(self, request: web.Request) -> Visitor:
        """Who has sent the request; a proxy's word counts when it is trusted."""
        return visitor_of(request.remote, request.headers.getall("X-Forwarded-For", []), (), self._trusted)

    def is_local(self, request: web.Request) -> bool:
        """Whether it comes from this machine, by a name of it, and no proxy has passed it on."""
        peer = parsed(request.remote or "")
        if peer is None or not peer.is_loopback or among(peer, self._trusted):
            return False
        return not any(name in request.headers for name in FORWARDED) and is_this_machine(_host(request.host))


def is_this_machine(host: str) -> bool:
    """Whether a host names the machine that it is used on."""
    address = parsed(host)
    return host == "localhost" if address is None else address.is_loopback


def _host(authority: str) -> str:
    """The name in a Host header, without its port."""
    return authority[1:].partition("]")[0] if authority.startswith("[") else authority.partition(":")[0]


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
