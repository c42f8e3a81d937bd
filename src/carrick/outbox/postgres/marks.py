"""Low-water marks: where this process's last claims of a channel left off, per tenant.

A transaction held open anywhere in the database keeps dead rows at the old end of the index; starting above them keeps
claims fast. A mark is only a hint: an entry that appears below it (a slow producer's commit, an entry that another
process gave back) is found by the next full look: a second later at most, or when less than a full batch is found.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from carrick.entry import Entry

FULL_LOOK_EVERY_SECONDS = 1.0
MOST_TENANTS = 64


class Mark(NamedTuple):
    """The last entry claimed of one tenant."""

    tenant: str
    rank: datetime
    seq: int


Lane = tuple[str, bool]
"""A channel, and whether only its fresh entries are claimed."""


class Marks:
    """The marks of all channels that this process claims from."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._marks: dict[Lane, dict[str, Mark]] = {}
        self._looked_at: dict[Lane, float] = {}

    def of(self, lane: Lane) -> list[Mark]:
        """The marks to start from, by tenant; empty when a full look is due."""
        with self._lock:
            if time.monotonic() - self._looked_at.get(lane, -1.0) >= FULL_LOOK_EVERY_SECONDS:
                self._marks.pop(lane, None)
                self._looked_at[lane] = time.monotonic()
            return sorted(self._marks.get(lane, {}).values())

    def advance(self, lane: Lane, last: Mapping[str, tuple[datetime, Entry]], *, full: bool) -> None:
        """Remember where a claim left off, given each tenant's last entry with its due time; a short batch forgets."""
        with self._lock:
            if not full:
                self._marks.pop(lane, None)
                return
            marks = self._marks.setdefault(lane, {})
            for tenant, (due, entry) in last.items():
                if entry.priority:
                    marks.pop(tenant, None)  # a rank that is not an age marks nothing
                else:
                    marks[tenant] = Mark(tenant, due, entry.seq)
            if len(marks) > MOST_TENANTS:
                del self._marks[lane]

    def forget(self) -> None:
        """Entries were given back: look everywhere again."""
        with self._lock:
            self._marks.clear()
