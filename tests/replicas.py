"""Replicas of shared state on one database, whose time passes when the test says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

from carrick.relay.threads import Threads
from carrick.state.beside import Beside, Redis
from carrick.state.database import Tables
from carrick.state.postgres.tables import PostgresTables
from carrick.state.shared import SharedState
from carrick.state.sqlite.tables import SqliteTables
from carrick.testing import Clock


class Time:
    """The clock of all replicas and of their database."""

    def __init__(self, database: Clock) -> None:
        self._database = database
        self.now = 1000.0

    def clock(self) -> float:
        return self.now

    def shift(self, seconds: float) -> None:
        """Let that many seconds pass."""
        self.now += seconds
        self._database.shift(seconds)


@asynccontextmanager
async def replica(database: Path | str, redis: Redis | None, time: Time | None = None) -> AsyncIterator[SharedState]:
    """One replica on a file or a PostgreSQL, with threads of its own; on the test's time, or on the real one."""
    threads = Threads(2)
    tables: Tables = SqliteTables(database) if isinstance(database, Path) else PostgresTables(database)
    clock = monotonic if time is None else time.clock
    state = SharedState(tables, threads, None if redis is None else Beside(redis, clock=clock))
    try:
        yield state
    finally:
        await state.close()
        threads.close()


async def until(condition: Callable[[], bool]) -> None:
    """Return when it holds. The test's own time limit ends what never does."""
    while not condition():  # noqa: ASYNC110  what is waited for is in another process
        await asyncio.sleep(0.01)
