"""The standard library's sqlite3.Connection, in any of its transaction modes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal, TypeVar

from carrick.outbox.adapters.adapter import drive, statement_only
from carrick.outbox.adapters.sqlite_transaction import in_sqlite_transaction
from carrick.outbox.statement import Row, Step, Steps, Values

T = TypeVar("T")


class SqliteAdapter:
    """A sqlite3 connection. The caller's row and text factories are left out of it."""

    is_async: Final[Literal[False]] = False
    dialect: Final[Literal["sqlite"]] = "sqlite"
    can_bulk: Final[Literal[True]] = True

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, steps: Steps[T]) -> T:
        """Run the operation in the open transaction, or begin the one that the caller will commit."""
        with _plain_text(self._connection):
            cursor = self._connection.cursor()
            cursor.row_factory = None
            try:
                return drive(in_sqlite_transaction(steps, self._connection), lambda step: _perform(cursor, step))
            finally:
                cursor.close()


def _perform(cursor: sqlite3.Cursor, step: Step) -> list[Row]:
    if isinstance(step, Values):
        return cursor.execute(step.sql, step.values).fetchall()
    sql, params = statement_only(step)
    return cursor.execute(sql, params).fetchall()


@contextmanager
def _plain_text(connection: sqlite3.Connection) -> Iterator[None]:
    """Text comes as str inside. There is no such setting per cursor, so the caller's is put back afterwards."""
    given = connection.text_factory
    connection.text_factory = str
    try:
        yield
    finally:
        connection.text_factory = given
