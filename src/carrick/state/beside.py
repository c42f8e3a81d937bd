"""Redis beside the database: nobody waits for it longer than its time limit, and nothing is lost when it fails."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Protocol, TypeVar

import msgspec

from carrick.errors import StoreUnavailable
from carrick.state.kv import Count

log = logging.getLogger("carrick.state")

T = TypeVar("T")

REST_SECONDS = 5.0
"""After a failure it is not tried for so long, so that a slow Redis does not slow every request."""
MOST_DUE = 10_000
"""Copies and messages that wait for a slow Redis; the oldest are dropped."""


class Health(msgspec.Struct, frozen=True):
    """Whether Redis works as it was set up. Degraded: all is right, on the database alone."""

    degraded: bool = False
    errors: int = 0
    """How often Redis has failed this process."""
    problem: str = ""
    """What was wrong with it last; nothing while it works."""


class Redis(Protocol):
    """What this needs of Redis (`carrick.state.redis.RedisServer` is such a one). All raise StoreUnavailable."""

    async def probe(self) -> None:
        """Whether it answers and takes writes."""

    async def increment(self, key: str, ttl: float, by: int) -> Count:
        """Add to a counter."""

    async def copy(self, key: str, value: bytes | None, ttl: float) -> None:
        """Write a value, or remove it."""

    async def publish(self, topic: str, text: str) -> None:
        """Tell those who listen."""

    def listen(self, topic: str) -> AsyncGenerator[str | None, None]:
        """None once it listens, then messages."""

    async def aclose(self) -> None:
        """Close every connection."""


class Beside:
    """The Redis of one replica. `clock` is in seconds."""

    def __init__(self, redis: Redis, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._redis = redis
        self._clock = clock
        self._rests_until = -1.0
        self._errors = 0
        self._problem = ""
        self._due: dict[tuple[str, str], Callable[[], Awaitable[None]]] = {}
        self._sending: asyncio.Task[None] | None = None

    @property
    def health(self) -> Health:
        """How it stands, as far as this process knows."""
        return Health(bool(self._problem), self._errors, self._problem)

    async def probe(self) -> None:
        """Find out whether it works, rest or not."""
        await self._tried(self._redis.probe())

    async def increment(self, key: str, ttl: float, by: int) -> Count | None:
        """The count; None when Redis cannot tell: then it is the database's to count."""
        if self._rests:
            return None
        return await self._tried(self._redis.increment(key, ttl, by))

    def copy(self, key: str, value: bytes | None, ttl: float) -> None:
        """Write a copy soon, or remove it (None); only the latest of a key is written."""
        self._soon(("copy", key), lambda: self._redis.copy(key, value, ttl))

    def publish(self, topic: str, text: str) -> None:
        """Tell those who listen soon; the same text that still waits is told once."""
        self._soon((f"publish {topic}", text), lambda: self._redis.publish(topic, text))

    def listen(self, topic: str) -> AsyncGenerator[str | None, None]:
        """None once it listens, then messages. Raises StoreUnavailable when the connection is lost."""
        return self._redis.listen(topic)

    async def close(self) -> None:
        """End what is on its way, and every connection."""
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
        await self._redis.aclose()

    @property
    def _rests(self) -> bool:
        return self._clock() < self._rests_until

    def _soon(self, name: tuple[str, str], send: Callable[[], Awaitable[None]]) -> None:
        """One after the other, so that copies of a key keep their order. Dropped while Redis rests: it was told of."""
        if self._rests:
            return
        self._due.pop(name, None)
        if len(self._due) >= MOST_DUE:
            del self._due[next(iter(self._due))]
        self._due[name] = send
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        while self._due and not self._rests:
            await self._tried(self._due.pop(next(iter(self._due)))())
        self._due.clear()

    async def _tried(self, call: Awaitable[T]) -> T | None:
        """What it answers, None when it fails, which is told once."""
        try:
            answer = await call
        except StoreUnavailable as error:
            self._errors += 1
            if not self._problem:
                log.warning("state.redis_failed", extra={"error": str(error)})
            self._problem = str(error)
            self._rests_until = self._clock() + REST_SECONDS
            return None
        if self._problem:
            log.info("state.redis_back")
            self._problem, self._rests_until = "", -1.0
        return answer
