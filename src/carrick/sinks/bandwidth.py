"""A limit in bytes per second that all deliveries of a sink share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

LARGEST_PIECE = 16 * 1024
PIECES_PER_SECOND = 8


class Bandwidth:
    """A token bucket that holds one piece: who comes first goes first, and nobody goes in bursts.

    `clock` is in seconds, `sleep` waits for seconds of that clock.
    """

    def __init__(
        self,
        bytes_per_second: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._rate = bytes_per_second
        self._clock = clock
        self._sleep = sleep
        self._free_at = clock()
        self.piece = max(1, min(LARGEST_PIECE, bytes_per_second // PIECES_PER_SECOND))
        """Into how small pieces a body is to be cut, so that deliveries take turns."""

    def seconds_for(self, size: int) -> float:
        """How long that many bytes take from now, if nobody else begins meanwhile."""
        return max(0.0, self._free_at - self._clock()) + size / self._rate

    async def take(self, size: int) -> None:
        """Wait until that many bytes may go."""
        now = self._clock()
        turn = max(now, self._free_at)
        self._free_at = turn + size / self._rate
        if turn > now:
            await self._sleep(turn - now)
