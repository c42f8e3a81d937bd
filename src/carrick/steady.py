"""The clock by which a process keeps leases and deadlines: the event loop's stands still while the machine sleeps."""

from __future__ import annotations

import time


def steady_seconds() -> float:
    """A clock that only goes forward and, where the system has such a one, goes on while the machine sleeps."""
    clock: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)
