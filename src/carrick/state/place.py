"""A place where shared state can be in one epoch: Redis, or tables of the database. What it is given is checked."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from carrick.state.kv import Item

COUNTER = re.compile(rb"0|-?[1-9][0-9]{0,17}")
"""What can be counted on, in every place."""


class EpochOver(Exception):
    """The epoch has been raised: ask for the current one and do it there. Nothing was written. Stays in this room."""


class Place(Protocol):
    """The operations of `Kv` in one epoch. Raises EpochOver, or StoreUnavailable where nobody answers."""

    async def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The values that there are."""

    async def set(self, key: str, value: bytes, ttl: float) -> None:
        """Write the value."""

    async def set_if_absent(self, key: str, value: bytes, ttl: float) -> bool:
        """Write the value if there is none."""

    async def compare_and_set(self, key: str, expected: bytes, value: bytes, ttl: float) -> bool:
        """Write the value if the expected one is there."""

    async def delete(self, key: str, expected: bytes | None = None) -> bool:
        """Remove the value, or only the expected one."""

    async def increment(self, key: str, ttl: float, by: int) -> int | None:
        """The sum, None where the value is no number."""

    async def scan(self, prefix: str, limit: int) -> list[Item]:
        """Values by the beginning of their keys."""

    async def publish(self, topic: str, text: str) -> None:
        """Tell those who listen."""


class Listening(Protocol):
    """Where messages come from."""

    def listen(self, topic: str) -> AsyncGenerator[str | None, None]:
        """None once it listens, and where something was missed; then messages. Raises StoreError when it is lost."""
