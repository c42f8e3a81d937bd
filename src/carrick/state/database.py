"""Shared state in tables of the database, for both databases: their calls block, so they run in threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from carrick.state.epoch import Epoch
from carrick.state.kv import Item
from carrick.state.place import Listening

T = TypeVar("T")


class Calling(Protocol):
    """Threads for calls that wait for the database (`carrick.relay.threads.Threads` is such a one)."""

    async def call(self, operation: Callable[..., T], *args: object) -> T:
        """Run the operation in a thread."""


class Tables(Listening, Protocol):
    """The tables of one database. Safe to use from several threads. All but the epochs raise EpochOver."""

    def close(self) -> None:
        """Give back every connection."""

    def check_schema(self) -> None:
        """Raise SchemaMissing, SchemaOutdated or SchemaTooNew when this release cannot work with the database."""

    def current(self) -> Epoch:
        """The epoch now."""

    def raise_from(self, number: int, name: str, run: str | None, failures: int) -> None:
        """Begin the next epoch, unless that number is no longer the current one."""

    def get_many(self, epoch: int, keys: Sequence[str]) -> dict[str, bytes]:
        """The values that there are."""

    def set(self, epoch: int, key: str, value: bytes, ttl: float) -> None:
        """Write the value."""

    def set_if_absent(self, epoch: int, key: str, value: bytes, ttl: float) -> bool:
        """Write the value if there is none."""

    def compare_and_set(self, epoch: int, key: str, expected: bytes, value: bytes, ttl: float) -> bool:
        """Write the value if the expected one is there."""

    def delete(self, epoch: int, key: str, expected: bytes | None) -> bool:
        """Remove the value, or only the expected one."""

    def increment(self, epoch: int, key: str, ttl: float, by: int) -> int | None:
        """The sum, None where the value is no number."""

    def scan(self, epoch: int, prefix: str, limit: int) -> list[Item]:
        """Values by the beginning of their keys."""

    def publish(self, topic: str, text: str) -> None:
        """Tell those who listen, in whatever epoch."""

    def prune(self, max_rows: int) -> int:
        """Remove values that have ended, of any epoch, at most so many; how many."""


class DatabaseEpochs:
    """The row of the database that all replicas agree by, for asyncio."""

    def __init__(self, tables: Tables, threads: Calling) -> None:
        self._tables = tables
        self._threads = threads

    async def current(self) -> Epoch:
        return await self._threads.call(self._tables.current)

    async def raise_from(self, number: int, *, name: str, run: str | None, failures: int) -> None:
        await self._threads.call(self._tables.raise_from, number, name, run, failures)


class DatabasePlace:
    """The tables in one epoch."""

    def __init__(self, tables: Tables, threads: Calling, epoch: int) -> None:
        self._tables = tables
        self._call = threads.call
        self._epoch = epoch

    async def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        return await self._call(self._tables.get_many, self._epoch, keys)

    async def set(self, key: str, value: bytes, ttl: float) -> None:
        await self._call(self._tables.set, self._epoch, key, value, ttl)

    async def set_if_absent(self, key: str, value: bytes, ttl: float) -> bool:
        return await self._call(self._tables.set_if_absent, self._epoch, key, value, ttl)

    async def compare_and_set(self, key: str, expected: bytes, value: bytes, ttl: float) -> bool:
        return await self._call(self._tables.compare_and_set, self._epoch, key, expected, value, ttl)

    async def delete(self, key: str, expected: bytes | None = None) -> bool:
        return await self._call(self._tables.delete, self._epoch, key, expected)

    async def increment(self, key: str, ttl: float, by: int) -> int | None:
        return await self._call(self._tables.increment, self._epoch, key, ttl, by)

    async def scan(self, prefix: str, limit: int) -> list[Item]:
        return await self._call(self._tables.scan, self._epoch, prefix, limit)

    async def publish(self, topic: str, text: str) -> None:
        await self._call(self._tables.publish, topic, text)
