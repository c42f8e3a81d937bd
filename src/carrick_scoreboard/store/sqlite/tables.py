"""The scoreboard's tables in one SQLite file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from carrick.errors import StoreError
from carrick.outbox.migration import Part
from carrick.outbox.sqlite import retention
from carrick.outbox.sqlite.database import Database
from carrick.outbox.sqlite.migrate import check_schema
from carrick.outbox.sqlite.moment import microseconds, moment
from carrick.outbox.statement import query
from carrick_scoreboard.store.tables import Ask, Row

PACKAGE = "carrick_scoreboard.store.sqlite"
PART = Part("scoreboard", PACKAGE)
TIMES = ("_at", "_expiry")


class SqliteTables:
    """One file; its writers take turns."""

    def __init__(self, path: str | Path) -> None:
        self._database = Database(path)

    @contextmanager
    def reading(self) -> Iterator[Ask]:
        with _refusals(), self._database.read() as connection:
            yield Asking(connection)

    @contextmanager
    def writing(self) -> Iterator[Ask]:
        with _refusals(), self._database.write() as connection:
            yield Asking(connection)

    def check_schema(self) -> None:
        with self._database.read() as connection:
            check_schema(self._database.path, connection, PART)

    def close(self) -> None:
        self._database.close()


@contextmanager
def _refusals() -> Iterator[None]:
    """What the tables refuse (a check, a key that is taken) is a StoreError, as on PostgreSQL."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"the database refused: {error}") from error


class Asking:
    """Queries in one transaction of this connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection: Any = connection

    def __call__(self, name: str, /, **params: Any) -> list[Row]:
        cursor = self.connection.execute(query(PACKAGE, name), {key: _given(value) for key, value in params.items()})
        columns = [column[0] for column in cursor.description or ()]
        return [
            {column: _read(column, value) for column, value in zip(columns, row, strict=True)}
            for row in cursor.fetchall()
        ]

    def redrive(self, channel: str, entry_id: UUID) -> None:
        dead = retention.dead_entries(self.connection, channel, [entry_id], None, None)
        retention.redrive(self.connection, channel, dead, 0)

    def discard(self, channel: str, entry_id: UUID) -> None:
        retention.discard(self.connection, channel, [entry_id])


def _given(value: Any) -> Any:
    """Times are stored as whole microseconds; a list is given as JSON."""
    if isinstance(value, datetime):
        return microseconds(value)
    return json.dumps(value) if isinstance(value, list) else value


def _read(column: str, value: Any) -> Any:
    return moment(value) if column.endswith(TIMES) and value is not None else value
