"""The simulator's time: the real one, moved by an offset, or standing still where it was put."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, date, datetime

import msgspec


class ClockState(msgspec.Struct):
    """Seconds ahead of real time; `stands_at` is the time (Unix seconds) of a clock that is stopped."""

    offset: float = 0.0
    stands_at: float | None = None


class Clock:
    """Reads and moves a clock. `real` is where real time comes from, in Unix seconds."""

    def __init__(self, state: ClockState, real: Callable[[], float] = time.time) -> None:
        self._real = real
        self.state = state

    def now(self) -> float:
        """Unix seconds."""
        if self.state.stands_at is not None:
            return self.state.stands_at
        return self._real() + self.state.offset

    def moment(self) -> datetime:
        """Now, in UTC."""
        return datetime.fromtimestamp(self.now(), UTC)

    def today(self) -> date:
        """The day, in UTC."""
        return self.moment().date()

    def set(self, moment: datetime) -> None:
        """Jump there; a stopped clock stays stopped."""
        self._move(moment.timestamp() - self.now())

    def advance(self, seconds: float) -> None:
        """Go forward, or back if it is negative."""
        self._move(seconds)

    def stop(self) -> None:
        """Stand still from now on."""
        self.state.stands_at = self.now()

    def run(self) -> None:
        """Go on from where it stands."""
        self.state.offset = self.now() - self._real()
        self.state.stands_at = None

    def _move(self, seconds: float) -> None:
        if self.state.stands_at is not None:
            self.state.stands_at += seconds
        else:
            self.state.offset += seconds
