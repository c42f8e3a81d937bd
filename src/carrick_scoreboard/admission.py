"""Which device a request comes from: its token is looked up by digest, so nothing is compared letter by letter.

Who is refused again and again (401, 403) is told to wait; who is let in is never counted, however often it comes. In
memory headers are found by Python's keyed hash, which says as little about them.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from aiohttp import web

from carrick.relay.threads import Threads
from carrick.variables import Network
from carrick.web.addresses import visitor_of
from carrick.web.problems import ProblemBody
from carrick.web.routes import as_json
from carrick.web.windows import Windows
from carrick_scoreboard.lately import Lately
from carrick_scoreboard.sealing import digest
from carrick_scoreboard.store.devices import Device, Devices
from carrick_scoreboard.together import Together

BEARER = re.compile(r"bearer +([A-Za-z0-9._~+/=-]{1,512})", re.IGNORECASE)
MOST_CHARACTERS = 600
"""No header of ours is longer."""
DEVICE_SECONDS = 1.0
"""A device that was revoked, moved or renamed elsewhere is taken for what it was so long at most."""
MOST_AT_ONCE = 1_000
USED_EVERY = timedelta(minutes=10)
REFUSED_SECONDS = 300.0
REFUSED_TOKENS = 5
"""A token may be refused so often in that time; then it is told to wait."""
REFUSED_ADDRESSES = 100
"""So may an address with whatever tokens: behind one there may be many displays."""

log = logging.getLogger("carrick.scoreboard")


class Admission:
    """Lets devices in. `trusted` are TRUSTED_PROXIES; `refused` is told of who is told to wait."""

    def __init__(
        self,
        devices: Devices,
        threads: Threads,
        *,
        trusted: Sequence[Network] = (),
        refused: Callable[[str], None] = lambda _: None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._devices = devices
        self._threads = threads
        self._trusted = trusted
        self._refused = refused
        self._now = now
        self._tokens = Windows(REFUSED_SECONDS, clock=clock)
        self._addresses = Windows(REFUSED_SECONDS, clock=clock)
        self._reads: Together[str, Device] = Together(self._read, MOST_AT_ONCE)
        self._lately: Lately[str, Device | None] = Lately(self._look_up, DEVICE_SECONDS)

    async def device(self, authorization: str | None) -> Device | None:
        """The device that this Authorization header belongs to; None for nobody. Raises StoreError."""
        if authorization is None or len(authorization) > MOST_CHARACTERS:
            return None
        return await self._lately.get(authorization)

    def wait(self, request: web.Request) -> int:
        """Count one more answer that refuses; 0 while it may say why, else the seconds to wait."""
        forwarded = request.headers.getall("X-Forwarded-For", [])
        who = visitor_of(request.remote, forwarded, (), self._trusted).neighbourhood
        given = request.headers.get("Authorization", "")
        found = [(*self._addresses.count(who), REFUSED_ADDRESSES)]
        if BEARER.fullmatch(given):
            found.append((*self._tokens.count(digest(given)), REFUSED_TOKENS))
        left = [seconds for count, seconds, most in found if count > most]
        if not left:
            return 0
        self._refused("too_often")
        if any(count == most + 1 for count, _, most in found):
            log.warning("device.refused_too_often", extra={"address": who, "path": request.path, "seconds": max(left)})
        return max(left)

    async def _look_up(self, authorization: str) -> Device | None:
        token = BEARER.fullmatch(authorization)
        if token is None:
            return None
        token_digest = digest(token[1])
        return (await self._reads.get([token_digest])).get(token_digest)

    async def _read(self, token_digests: list[str]) -> dict[str, Device]:
        return await self._threads.call(self._found, token_digests)

    def _found(self, token_digests: list[str]) -> dict[str, Device]:
        """In a thread. That a device has come is written now and then."""
        found = self._devices.of_tokens(token_digests)
        oldest = self._now() - USED_EVERY
        due = [one.id for one in found.values() if one.last_used_at is None or one.last_used_at <= oldest]
        if due:
            self._devices.used(*due)
        return found


def unauthorized() -> web.Response:
    """The answer to who is no device, or no longer."""
    answer = as_json(ProblemBody(error="invalid_token", message="the device token is missing, wrong or revoked"), 401)
    answer.headers["WWW-Authenticate"] = 'Bearer realm="API"'
    return answer
