"""Counts of what is not welcome, in this process's memory: by key, each in a window of its own. Bounded."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

MOST_KEYS = 10_000


class Windows:
    """A window of a key begins with the first one counted, and ends so many seconds later."""

    def __init__(self, seconds: float, *, most: int = MOST_KEYS, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._most = most
        self._clock = clock
        self._windows: dict[str, tuple[float, int]] = {}

    def count(self, key: str) -> tuple[int, int]:
        """One more; how many there were in its window, and the seconds until they are forgotten."""
        now = self._clock()
        ends, count = self._windows.pop(key, (0.0, 0))
        if ends <= now:
            ends, count = now + self._seconds, 0
        self._windows[key] = (ends, count + 1)
        while len(self._windows) > self._most:
            del self._windows[next(iter(self._windows))]
        return count + 1, math.ceil(ends - now)
