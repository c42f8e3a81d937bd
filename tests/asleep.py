"""A machine that sleeps: its clocks go on, but not the event loop's."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest


def sleeping(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets the machine sleep for so many seconds, as often as it is called."""
    awake, slept = time.clock_gettime, [0.0]
    monkeypatch.setattr(time, "clock_gettime", lambda clock: awake(clock) + slept[0])

    def sleep(seconds: float) -> None:
        slept[0] += seconds

    return sleep
