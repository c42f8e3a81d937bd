"""Time and chance, so that a test can bring its own."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Protocol


class Clock(Protocol):
    """A clock that only goes forward, with a way to wait. The time of day is never asked: devices get it wrong."""

    def seconds(self) -> float:
        """Seconds since some moment."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return when so many seconds have gone by."""
        ...

    def chance(self) -> float:
        """A number from 0 to 1 that others do not share."""
        ...


class RealClock:
    """The clock of this machine."""

    def seconds(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def chance(self) -> float:
        return random.random()  # noqa: S311  (spreads requests, guards nothing)
