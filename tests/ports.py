"""Ports for servers that a test starts, or does not start, later."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator

FIRST, LAST = 10_000, 30_000
"""Below those that the kernel gives to whoever connects: one of them could be taken before the server has it."""
WORKERS = 8
"""Test processes side by side have ports of their own."""


def _shuffled() -> Iterator[int]:
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % WORKERS
    mine = range(FIRST + worker, LAST, WORKERS)
    while True:
        yield from random.sample(mine, len(mine))


_candidates = _shuffled()


def free_port() -> int:
    """A port that nobody listens on; the next call gives another."""
    return next(port for port in _candidates if _is_free(port))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
