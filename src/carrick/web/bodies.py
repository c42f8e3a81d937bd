"""The one way in for bodies, on every service: within a size, a time and a pace, and within a sum over all requests.

Nobody is known while a body arrives, so whatever it costs is bounded: of an address that sends much at once, the body
that began first gives way, and the loop never waits for a large one to be unfolded.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from aiohttp import web

from carrick.relay.threads import Threads
from carrick.variables import Network
from carrick.web.addresses import visitor_of
from carrick.web.problems import Problem
from carrick.web.unfolding import Damaged, TooMuch, UnknownEncoding, encoding_of, unfolded

BODY_SECONDS = 60.0
"""How long a body may take to arrive."""
GRACE_SECONDS = 10.0
BYTES_PER_SECOND = 1024
"""After the grace a body must have come at this pace."""
SUM_BYTES = 128 * 1024 * 1024
"""What the bodies of all requests under way may have together."""
SMALL_BYTES = 128 * 1024
"""A body up to this size, sent as it is, is looked at in the loop; any other in a thread."""
THREADS = 4
BUSY_SECONDS = 1
JSON_TYPE = "application/json"
T = TypeVar("T")


class Body:
    """The body of one request as it was sent, and how many bytes are held for it."""

    def __init__(self, request: web.Request, seconds: float) -> None:
        self.request = request
        self.deadline = asyncio.timeout(min(seconds, GRACE_SECONDS))
        self.sent = b""
        self.held = 0
        self.arrives = True
        self.gives_way = False


class Bodies:
    """The bodies of all requests of one application. Used from one event loop."""

    def __init__(self, trusted: Sequence[Network] = (), *, sum_bytes: int = SUM_BYTES) -> None:
        self._trusted = trusted
        self._sum_bytes = sum_bytes
        self._threads = Threads(THREADS)
        self._sum = 0
        self._all: dict[Body, None] = {}

    @asynccontextmanager
    async def of(self, request: web.Request, most: int, seconds: float = BODY_SECONDS) -> AsyncIterator[Body]:
        """The whole body; it is held until the end. Raises Problem."""
        if (request.content_length or 0) > most:
            raise too_large(most)
        body = Body(request, seconds)
        self._all[body] = None
        try:
            body.sent = await self._arrived(request, body, most, seconds)
            body.arrives = False
            yield body
        finally:
            del self._all[body]
            self._sum -= body.held

    async def read(self, body: Body, encoding: str, most: int, decode: Callable[[bytes], T]) -> tuple[bytes, T]:
        """The body without its compression, and what it decodes to. What is not small is done in a thread, of which
        there are few: nothing unfolded waits for a turn. The text is held, too. Raises Problem."""
        if encoding == "identity" and len(body.sent) <= SMALL_BYTES:
            return body.sent, decode(body.sent)
        text, value = await self.in_thread(_read, body.sent, encoding, most, decode)
        if text is not body.sent:
            if self._sum + len(text) > self._sum_bytes:
                raise _busy()
            self._sum += len(text)
            body.held += len(text)
        return text, value

    async def in_thread(self, work: Callable[..., T], *given: object) -> T:
        """Work for somebody who may be a stranger, in one of few threads that nobody else needs."""
        return await self._threads.call(work, *given)

    async def close(self, _: web.Application) -> None:
        """Let the threads end."""
        self._threads.close()

    async def _arrived(self, request: web.Request, body: Body, most: int, seconds: float) -> bytes:
        sent = bytearray()
        began = asyncio.get_running_loop().time()
        try:
            async with body.deadline:
                async for piece in request.content.iter_any():
                    sent += piece
                    if len(sent) > most:
                        raise too_large(most)
                    self._hold(body, len(piece))
                    if not body.gives_way:
                        pace = GRACE_SECONDS + len(sent) / BYTES_PER_SECOND
                        body.deadline.reschedule(began + min(seconds, pace))
        except TimeoutError:
            raise _busy() if body.gives_way else _too_slow(seconds) from None
        except web.RequestPayloadError as error:
            raise Problem(400, "broken_off", f"the body did not end as it should ({error})") from None
        return bytes(sent)

    def _hold(self, body: Body, size: int) -> None:
        """Hold so much more. Where that is too much, of the address with most the body that began first gives way."""
        body.held += size
        self._sum += size
        while self._sum > self._sum_bytes:
            senders = {one: self._sender(one.request) for one in self._all}
            sums: Counter[str] = Counter()
            for one, sender in senders.items():
                sums[sender] += one.held
            arriving = [one for one in self._all if one.arrives and one.held and not one.deadline.expired()]
            if not arriving:  # those that are left end by themselves, at once
                return
            first = max(arriving, key=lambda one: sums[senders[one]])
            self._sum -= first.held
            first.held = 0
            first.gives_way = True
            first.deadline.reschedule(0)

    def _sender(self, request: web.Request) -> str:
        forwarded = request.headers.getall("X-Forwarded-For", [])
        return visitor_of(request.remote, forwarded, (), self._trusted).neighbourhood


BODIES = web.AppKey("BODIES", Bodies)


def check_type(request: web.Request) -> None:
    """Raise Problem unless it says JSON, in UTF-8 if at all: pages of other sites cannot have a browser send that."""
    given = request.headers.get("Content-Type", "")
    kind, *parameters = given.lower().split(";")
    if kind.strip() != JSON_TYPE:
        raise Problem(415, "unsupported", f"Content-Type {given!r:.100} is not supported; accepted: {JSON_TYPE}")
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "charset" and value.strip().strip('"') not in ("utf-8", "utf8", "us-ascii"):
            raise Problem(415, "unsupported", f"charset {value.strip()!r:.100} is not supported; accepted: utf-8")


def check_encoding(request: web.Request) -> str:
    """One of ENCODINGS. Raises Problem."""
    try:
        return encoding_of(", ".join(request.headers.getall("Content-Encoding", [])))
    except UnknownEncoding as error:
        raise Problem(415, "unsupported", str(error)) from None


def _read(sent: bytes, encoding: str, most: int, decode: Callable[[bytes], T]) -> tuple[bytes, T]:
    """One that is empty has no compression."""
    try:
        text = unfolded(sent, encoding, most) if sent else sent
    except TooMuch:
        raise too_large(most) from None
    except Damaged as error:
        raise Problem(400, "malformed", str(error)) from None
    return text, decode(text)


def too_large(most: int) -> Problem:
    """It is."""
    return Problem(413, "too_large", f"the body is larger than {most:,} bytes")


def _too_slow(seconds: float) -> Problem:
    said = f"the body did not arrive within {seconds:g} seconds, or at less than {BYTES_PER_SECOND:,} bytes a second"
    return Problem(408, "too_slow", said)


def _busy() -> Problem:
    return Problem(429, "busy", "too many bodies are under way; try again", retry_after=BUSY_SECONDS)
