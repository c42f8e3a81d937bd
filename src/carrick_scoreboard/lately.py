"""What was read a moment ago, so that many who ask at once cost one read. Bounded in age and in number."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MOST = 10_000


class Lately(Generic[K, V]):
    """Values by key, each at most `seconds` old, counted from before it was read. `load` reads one.

    Who asks while a value is being read gets that one. What failed is not remembered.
    """

    def __init__(
        self,
        load: Callable[[K], Awaitable[V]],
        seconds: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        most: int = MOST,
    ) -> None:
        self._load = load
        self._seconds = seconds
        self._clock = clock
        self._most = most
        self._known: dict[K, tuple[float, asyncio.Future[V]]] = {}

    async def get(self, key: K) -> V:
        """The value, from memory or read now."""
        known = self._known.get(key)
        if known is not None and self._clock() < known[0] + self._seconds:
            value = known[1]
            return value.result() if value.done() else await asyncio.shield(value)
        return await asyncio.shield(self._read(key))

    def forget(self, key: K) -> None:
        """Read it anew next time."""
        self._known.pop(key, None)

    def _read(self, key: K) -> asyncio.Future[V]:
        if len(self._known) >= self._most:
            self._known.clear()
        value: asyncio.Future[V] = asyncio.ensure_future(self._load(key))
        entry = (self._clock(), value)
        self._known[key] = entry
        value.add_done_callback(lambda _: self._read_through(key, entry))
        return value

    def _read_through(self, key: K, entry: tuple[float, asyncio.Future[V]]) -> None:
        failed = entry[1].cancelled() or entry[1].exception() is not None
        if failed and self._known.get(key) is entry:
            del self._known[key]
