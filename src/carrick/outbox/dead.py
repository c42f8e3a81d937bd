"""Removing many dead entries: transaction by transaction, so that nobody waits long for the database."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from carrick.outbox.limits import check_limit
from carrick.outbox.store import MOST_DISCARDED, Store

MOST_ROWS = 2**31 - 1
"""As many as a redrive takes."""


class Discarded(NamedTuple):
    """How many were removed. `left`: the time was up before all were."""

    entries: int
    left: bool


def discard_all(
    store: Store,
    channel: str,
    *,
    reason: str | None = None,
    died_by: datetime | None = None,
    limit: int | None = None,
    seconds: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Discarded:
    """Remove dead entries for good, the oldest first, for so many seconds at most. Raises UnknownChannel, InvalidInput.

    Without `died_by`, what dies meanwhile stays all the same: it ends where the newest stood at the beginning.
    """
    check_limit("limit", limit, MOST_ROWS)
    began, died_by = clock(), died_by or store.now()
    count = 0
    while limit is None or count < limit:
        most = MOST_DISCARDED if limit is None else min(MOST_DISCARDED, limit - count)
        removed = store.discard_all(channel, reason=reason, died_by=died_by, max_rows=most)
        count += removed
        if not removed:
            break
        if seconds is not None and clock() - began >= seconds:
            return Discarded(count, left=limit is None or count < limit)
    return Discarded(count, left=False)
