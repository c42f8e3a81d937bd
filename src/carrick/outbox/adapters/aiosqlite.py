"""aiosqlite.Connection: a sqlite3 connection that lives in a thread of its own."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeVar

import aiosqlite

from carrick.outbox.adapters.sqlite import SqliteAdapter
from carrick.outbox.statement import Steps

T = TypeVar("T")


class AiosqliteAdapter:
    """An aiosqlite connection."""

    is_async: Final[Literal[True]] = True
    dialect: Final[Literal["sqlite"]] = "sqlite"
    can_bulk: Final[Literal[True]] = True

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection: Any = connection

    async def run(self, steps: Steps[T]) -> T:
        """Run the whole operation in the connection's thread.

        One trip instead of two per statement; and no statement of another task gets between those of one put.
        aiosqlite has no public way to do that: `_execute` is what all its own methods go through.
        """
        return await self._connection._execute(self._run, steps)  # type: ignore[no-any-return]

    def _run(self, steps: Steps[T]) -> T:
        return SqliteAdapter(self._connection._conn).run(steps)
