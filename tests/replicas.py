"""Replicas of shared state on one database, whose time passes when the test says so; and a wire that can be cut."""

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


class Wire:
    """Stands between a replica and a Redis on a socket file: passes everything on until told otherwise."""

    def __init__(self, target: Path, path: Path) -> None:
        self._target = target
        self._path = path
        self._writers: set[asyncio.StreamWriter] = set()
        self.url = f"unix://{path}"
        self.cut = False
        """No connection is let through."""
        self.swallow: bytes | None = None
        """The answer to a command that contains this never arrives: the connection breaks when it comes."""

    async def __aenter__(self) -> Wire:
        self._server = await asyncio.start_unix_server(self._serve, self._path)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.drop()

    def drop(self) -> None:
        """Break every connection there is."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.cut:
            writer.transport.abort()
            return
        try:
            there, back = await asyncio.open_unix_connection(self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, back}
        swallowing = asyncio.Event()
        await asyncio.gather(self._forth(reader, back, swallowing), self._back(there, writer, swallowing))

    async def _forth(self, reader: asyncio.StreamReader, to: asyncio.StreamWriter, swallowing: asyncio.Event) -> None:
        while words := await _some(reader):
            if self.swallow is not None and self.swallow in words:
                swallowing.set()
            to.write(words)
        to.close()

    async def _back(self, reader: asyncio.StreamReader, to: asyncio.StreamWriter, swallowing: asyncio.Event) -> None:
        while words := await _some(reader):
            if swallowing.is_set():
                break
            to.write(words)
        to.close()


async def _some(reader: asyncio.StreamReader) -> bytes:
    """What has come; nothing when the connection has ended, however."""
    try:
        return await reader.read(65536)
    except OSError:
        return b""


async def until(condition: Callable[[], bool]) -> None:
    """Return when it holds. The test's own time limit ends what never does."""
    while not condition():  # noqa: ASYNC110  what is waited for is in another process
        await asyncio.sleep(0.01)
