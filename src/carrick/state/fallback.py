"""Shared state for the application: on Redis when it is there, on the database when it is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from carrick.errors import InvalidInput, StoreUnavailable
from carrick.outbox.limits import check_limit
from carrick.state import kv
from carrick.state.database import Calling, DatabaseEpochs, DatabasePlace, Tables
from carrick.state.epoch import Epoch
from carrick.state.kv import Heard, Item
from carrick.state.listening import hear, merged
from carrick.state.place import EpochOver, Listening, Place
from carrick.state.switch import Health, Switch
from carrick.steady import steady_seconds

T = TypeVar("T")
Operation = Callable[[Place], Awaitable[T]]

MAX_SCAN = 1_000


class Redis(Listening, Protocol):
    """What this needs of Redis (`carrick.state.redis.RedisServer` is such a one)."""

    async def at(self, epoch: Epoch) -> Place:
        """Its place in that epoch. Raises EpochOver."""

    async def probe(self) -> str:
        """Which run of the server it is. Raises StoreUnavailable."""

    async def close(self) -> None:
        """Close every connection."""


class SharedState:
    """The `Kv` of one replica. Without `redis` it is always in the tables, and takes everybody there with it."""

    def __init__(
        self,
        tables: Tables,
        threads: Calling,
        redis: Redis | None = None,
        *,
        clock: Callable[[], float] = steady_seconds,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._tables = tables
        self._threads = threads
        self._redis = redis
        self._switch = Switch(DatabaseEpochs(tables, threads), redis, clock=clock, sleep=sleep)

    async def get(self, key: str) -> bytes | None:
        return (await self.get_many([key])).get(key)

    async def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        kv.check_keys(keys)
        return await self._do(lambda place: place.get_many(keys))

    async def set(self, key: str, value: bytes, *, ttl: float) -> None:
        _check(key, value, ttl)
        await self._do(lambda place: place.set(key, value, ttl))

    async def set_if_absent(self, key: str, value: bytes, *, ttl: float) -> bool:
        _check(key, value, ttl)
        return await self._do(lambda place: place.set_if_absent(key, value, ttl))

    async def compare_and_set(self, key: str, expected: bytes, value: bytes, *, ttl: float) -> bool:
        _check(key, value, ttl)
        kv.check_value(expected, "expected")
        return await self._do(lambda place: place.compare_and_set(key, expected, value, ttl))

    async def delete(self, key: str) -> bool:
        kv.check_key(key)
        return await self._do(lambda place: place.delete(key))

    async def compare_and_delete(self, key: str, expected: bytes) -> bool:
        kv.check_key(key)
        kv.check_value(expected, "expected")
        return await self._do(lambda place: place.delete(key, expected))

    async def increment(self, key: str, *, ttl: float, by: int = 1) -> int:
        kv.check_key(key)
        kv.check_ttl(ttl)
        kv.check_step(by)
        total = await self._do(lambda place: place.increment(key, ttl, by))
        if total is None:
            raise InvalidInput("key", f"the value of {key!r:.80} is no counter", "a key that only `increment` writes")
        return total

    async def scan(self, prefix: str, *, limit: int = 100) -> list[Item]:
        kv.check_prefix(prefix)
        check_limit("limit", limit, MAX_SCAN)
        found = await self._do(lambda place: place.scan(prefix, limit))
        return sorted(found, key=lambda item: item.key.encode())

    async def publish(self, topic: str, text: str) -> None:
        kv.check_key(topic, "topic")
        kv.check_message(text)
        await self._do(lambda place: place.publish(topic, text))

    def subscribe(self, topic: str) -> AsyncGenerator[Heard, None]:
        """Listens at both places at once: whoever publishes may be at either."""
        kv.check_key(topic, "topic")
        in_database = hear(lambda: self._tables.listen(topic), "the database")
        redis = self._redis
        if redis is None:
            return in_database
        return merged(in_database, hear(lambda: redis.listen(topic), "Redis", self._switch.lost_redis))

    async def recover(self) -> bool:
        """Go back to Redis if it answers and its time has come; whether it is in use. Raises StoreError."""
        return await self._switch.recover()

    async def look(self) -> Health:
        """How it stands by the database, for readiness. Raises StoreError."""
        return await self._switch.look()

    async def is_elsewhere(self) -> bool:
        """Whether all is on a Redis that this process was not told of. Any other call takes everybody away from it."""
        return self._redis is None and await self._switch.is_on_redis()

    @property
    def health(self) -> Health:
        """How it stands, as far as this process knows, for metrics."""
        return self._switch.health

    async def prune(self, max_rows: int = 10_000) -> int:
        """Remove values in the tables that have ended, at most so many; how many."""
        return await self._threads.call(self._tables.prune, max_rows)

    async def close(self) -> None:
        """Close every connection."""
        if self._redis is not None:
            await self._redis.close()
        self._tables.close()

    async def _do(self, operation: Operation[T]) -> T:
        """Do it in the current epoch; when that has ended meanwhile, in the next one. What Redis has half done in an
        epoch that was left is seen by nobody."""
        while True:
            epoch = await self._switch.entered()
            try:
                if not epoch.on_redis:
                    return await operation(DatabasePlace(self._tables, self._threads, epoch.number))
                answer = await self._on_redis(epoch, operation)
            except EpochOver:
                self._switch.forget(epoch)
                continue
            if answer and await self._switch.still_in(epoch):
                return answer[0]

    async def _on_redis(self, epoch: Epoch, operation: Operation[T]) -> tuple[T] | None:
        """What Redis answers, None when it cannot and the epoch was left. Raises EpochOver."""
        try:
            if self._redis is None:
                raise StoreUnavailable("REDIS_URL is not set for this process")
            return (await operation(await self._redis.at(epoch)),)
        except StoreUnavailable as error:
            await self._switch.leave_redis(epoch, error)
            return None


def _check(key: str, value: bytes, ttl: float) -> None:
    kv.check_key(key)
    kv.check_value(value)
    kv.check_ttl(ttl)
