"""`carrick` in a process whose own clock is wrong: `SHIFTED_SECONDS=600 python -m tests.scenario.shifted COMMAND…`.

The seam is Python's: `time.time`, `time.time_ns`, and `datetime.now` in the modules that use it. The clock of
PostgreSQL is another process's, and stays right.
"""

from __future__ import annotations

import datetime
import os
import time

from carrick.cli import main
from carrick.forward import handshake, service
from carrick.sinks import http

REAL = datetime.datetime


def shift(seconds: float) -> None:
    """From now on this process believes that it is that much later."""
    now, now_ns = time.time, time.time_ns
    time.time = lambda: now() + seconds
    time.time_ns = lambda: now_ns() + round(seconds * 1e9)

    class Shifted(REAL):
        """Tells the wrong time in the type that everybody knows."""

        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> REAL:  # type: ignore[override]
            return REAL.fromtimestamp(time.time(), tz)

    for module in (http, service, handshake):  # those that ask for the time
        module.datetime = Shifted  # type: ignore[attr-defined]


if __name__ == "__main__":
    shift(float(os.environ["SHIFTED_SECONDS"]))
    main()
