"""Shared state for the application: values in the database; Redis beside it, where there is one.

Every read and every decision is the database's. What Redis gets are copies for people who look, messages that go out
both ways, and the counters of limiters while it answers. So it may be slow, empty or gone, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from carrick.errors import InvalidInput
from carrick.outbox.limits import check_limit
from carrick.state import kv
from carrick.state.beside import Beside, Health
from carrick.state.database import Calling, Tables
from carrick.state.kv import Count, Heard, Item
from carrick.state.listening import hear, merged

MAX_SCAN = 1_000


class SharedState:
    """The `Kv` of one replica. `beside`: its Redis, if it has one."""

    def __init__(self, tables: Tables, threads: Calling, beside: Beside | None = None) -> None:
        self._tables = tables
        self._call = threads.call
        self._beside = beside

    async def get(self, key: str) -> bytes | None:
        return (await self.get_many([key])).get(key)

    async def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        kv.check_keys(keys)
        return await self._call(self._tables.get_many, keys)

    async def set(self, key: str, value: bytes, *, ttl: float) -> None:
        _check(key, value, ttl)
        await self._call(self._tables.set, key, value, ttl)

    async def set_if_absent(self, key: str, value: bytes, *, ttl: float) -> bool:
        _check(key, value, ttl)
        return await self._call(self._tables.set_if_absent, key, value, ttl)

    async def compare_and_set(self, key: str, expected: bytes, value: bytes, *, ttl: float) -> bool:
        _check(key, value, ttl)
        kv.check_value(expected, "expected")
        return await self._call(self._tables.compare_and_set, key, expected, value, ttl)

    async def delete(self, key: str) -> bytes | None:
        kv.check_key(key)
        return await self._call(self._tables.delete, key, None)

    async def compare_and_delete(self, key: str, expected: bytes) -> bool:
        kv.check_key(key)
        kv.check_value(expected, "expected")
        return await self._call(self._tables.delete, key, expected) is not None

    async def increment(self, key: str, *, ttl: float, by: int = 1) -> Count:
        """On Redis while it answers: a counter that Redis loses begins anew, as does one when it goes or comes back."""
        kv.check_key(key)
        kv.check_ttl(ttl)
        kv.check_step(by)
        count = None if self._beside is None else await self._beside.increment(key, ttl, by)
        if count is None:
            count = await self._call(self._tables.increment, key, ttl, by)
        if count is None:
            raise InvalidInput("key", f"the value of {key!r:.80} is no counter", "a key that only `increment` writes")
        return count

    async def scan(self, prefix: str, *, limit: int = 100) -> list[Item]:
        kv.check_prefix(prefix)
        check_limit("limit", limit, MAX_SCAN)
        return await self._call(self._tables.scan, prefix, limit)

    def copy(self, key: str, value: bytes | None, *, ttl: float = kv.MAX_TTL_SECONDS) -> None:
        kv.check_key(key)
        if self._beside is not None:
            self._beside.copy(key, value, ttl)

    async def publish(self, topic: str, text: str) -> None:
        """Both ways; when this returns, the database's listeners will hear it."""
        kv.check_key(topic, "topic")
        kv.check_message(text)
        if self._beside is not None:
            self._beside.publish(topic, text)
        await self._call(self._tables.publish, topic, text)

    def subscribe(self, topic: str) -> AsyncGenerator[Heard, None]:
        """Listens both ways: what is heard twice is harmless, what is missed is not."""
        kv.check_key(topic, "topic")
        in_database = hear(lambda: self._tables.listen(topic), "the database")
        beside = self._beside
        if beside is None:
            return in_database
        return merged(in_database, hear(lambda: beside.listen(topic), "Redis"))

    async def look(self) -> Health:
        """Ask Redis whether it is there; how it stands then."""
        if self._beside is not None:
            await self._beside.probe()
        return self.health

    @property
    def health(self) -> Health:
        """How it stands, as far as this process knows."""
        return Health() if self._beside is None else self._beside.health

    async def prune(self, max_rows: int = 10_000) -> int:
        """Remove values that have ended, at most so many; how many."""
        return await self._call(self._tables.prune, max_rows)

    async def close(self) -> None:
        """Close every connection."""
        if self._beside is not None:
            await self._beside.close()
        self._tables.close()


def _check(key: str, value: bytes, ttl: float) -> None:
    kv.check_key(key)
    kv.check_value(value)
    kv.check_ttl(ttl)
