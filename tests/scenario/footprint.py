"""How much memory and how many open files a process has, over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

GROWTH = 1.10
SLACK_MB = 4.0
SLACK_HANDLES = 8
"""What may come and go: buffers, a connection more or less."""


class Footprint(NamedTuple):
    """One look at a process."""

    memory_mb: float
    handles: int

    @classmethod
    def of(cls, pid: int) -> Footprint:
        """As it is now."""
        status = Path(f"/proc/{pid}/status").read_text()
        (resident,) = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")]
        return cls(int(resident) / 1024, len(list(Path(f"/proc/{pid}/fd").iterdir())))


def middle(looks: Sequence[Footprint]) -> Footprint:
    """The median of each."""
    return Footprint(median(look.memory_mb for look in looks), round(median(look.handles for look in looks)))


def check_flat(looks: Sequence[Footprint]) -> str:
    """Raise AssertionError when the last quarter needs more than the second; what both need. The first is warm-up."""
    quarter = len(looks) // 4
    before, after = middle(looks[quarter : 2 * quarter]), middle(looks[-quarter:])
    said = f"{before.memory_mb:.1f} -> {after.memory_mb:.1f} MB, {before.handles} -> {after.handles} handles"
    assert after.memory_mb <= before.memory_mb * GROWTH + SLACK_MB, f"memory grows: {said}"
    assert after.handles <= before.handles + SLACK_HANDLES, f"handles grow: {said}"
    return said
