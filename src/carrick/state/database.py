"""Shared state in tables of the database, for both databases: their calls block, so they run in threads."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Protocol, TypeVar

from carrick.state.kv import Count, Item

T = TypeVar("T")


class Calling(Protocol):
    """Threads for calls that wait for the database (`carrick.relay.threads.Threads` is such a one)."""

    async def call(self, operation: Callable[..., T], *args: object) -> T:
        """Run the operation in a thread."""


class Tables(Protocol):
    """The tables of one database. Safe to use from several threads. What they are given is checked."""

    def close(self) -> None:
        """Give back every connection."""

    def check_schema(self) -> None:
        """Raise SchemaMissing, SchemaOutdated or SchemaTooNew when this release cannot work with the database."""

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The values that there are."""

    def set(self, key: str, value: bytes, ttl: float) -> None:
        """Write the value."""

    def set_if_absent(self, key: str, value: bytes, ttl: float) -> bool:
        """Write the value if there is none."""

    def compare_and_set(self, key: str, expected: bytes, value: bytes, ttl: float) -> bool:
        """Write the value if the expected one is there."""

    def delete(self, key: str, expected: bytes | None) -> bytes | None:
        """Remove the value, or only the expected one; what was removed."""

    def increment(self, key: str, ttl: float, by: int) -> Count | None:
        """The count, None where the value is no number."""

    def scan(self, prefix: str, limit: int) -> list[Item]:
        """Values by the beginning of their keys, in order."""

    def publish(self, topic: str, text: str) -> None:
        """Tell those who listen."""

    def listen(self, topic: str) -> AsyncGenerator[str | None, None]:
        """None once it listens, and where something was missed; then messages. Raises StoreError when it is lost."""

    def prune(self, max_rows: int) -> int:
        """Remove values that have ended, at most so many; how many."""
