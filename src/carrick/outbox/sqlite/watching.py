"""Tells when another connection has committed to the file: a look at SQLite's `data_version`, every few milliseconds.

A look reads one number that all who have the file open share: 3 microseconds. It sees every commit, whatever name the
file was opened by and whatever the system reports of writes to it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from carrick.entry import Batch
from carrick.outbox.sqlite.database import connect
from carrick.outbox.sqlite.failures import map_errors

LOOK_SECONDS = 0.005
"""Between two looks: a hundredth of a core while nothing happens."""


class SqliteWatch:
    """Watches one file with a connection of its own, so that commits of this process are seen as well."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with map_errors(path):
            self._connection: sqlite3.Connection = connect(path)
            self._seen = self._version()

    async def next(self) -> str | None:
        """Wait for a commit that was not seen yet; it may concern any channel."""
        while not self._changed():  # noqa: ASYNC110  a file rings no event
            await asyncio.sleep(LOOK_SECONDS)
        return None

    async def claim(
        self, channel: str, owner: str, *, max_rows: int, max_bytes: int, fresh_seconds: float | None
    ) -> Batch | None:
        """Never: a claim waits for the disk, and here that would be this thread."""
        return None

    async def close(self) -> None:
        self._connection.close()

    def _changed(self) -> bool:
        with map_errors(self._path):
            version = self._version()
        changed = version != self._seen
        self._seen = version
        return changed

    def _version(self) -> int:
        (version,) = self._connection.execute("pragma data_version").fetchone()
        return int(version)
