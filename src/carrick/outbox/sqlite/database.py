"""The store's own connections to one file: one that writes, one that reads; opened when first needed."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from carrick.errors import SchemaMissing, StoreUnavailable
from carrick.outbox.sqlite.failures import map_errors
from carrick.outbox.statement import Copy, Row, Step, Steps, Values, query

PACKAGE = "carrick.outbox.sqlite"
BUSY_SECONDS = 30.0

T = TypeVar("T")


class Database:
    """One SQLite file. Writers of this process take turns on a lock, those of other processes on the file's."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._writing = threading.Lock()
        self._reading = threading.Lock()
        self._closed = False

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A transaction that writes: durable when it ends, undone whole when something fails. Raises StoreBusy."""
        with self._writing:
            try:
                self._writer = connection = self._writer or self._open()
                connection.execute("begin immediate")
                yield connection
                connection.execute("commit")
            except BaseException as error:
                self._undo(self._writer, error)
                raise

    def write_one(self, steps: Steps[T]) -> T:
        """An operation whose one writing statement is its own transaction: durable when this returns."""
        with self._writing:
            try:
                self._writer = connection = self._writer or self._open()
                return run(connection, steps)
            except BaseException as error:
                self._undo(self._writer, error)
                raise

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """One consistent view of the file; waits for no writer."""
        with self._reading:
            try:
                self._reader = connection = self._reader or self._open()
                connection.execute("begin")
                yield connection
                connection.execute("commit")
            except BaseException as error:
                self._undo(self._reader, error)
                raise

    def close(self) -> None:
        """Close both connections, after the operations under way."""
        with self._writing, self._reading:
            self._closed = True
            for connection in (self._writer, self._reader):
                if connection is not None:
                    connection.close()
            self._writer = self._reader = None

    def _undo(self, connection: sqlite3.Connection | None, error: BaseException) -> None:
        """Roll back what an error has left of a transaction, and raise Carrick's error where its meaning is known."""
        with map_errors(self.path):
            if connection is not None and connection.in_transaction:  # some errors have rolled back already
                connection.execute("rollback")
            if isinstance(error, sqlite3.Error | UnicodeEncodeError | OverflowError):
                raise error

    def _open(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreUnavailable("this store is closed")
        if not self.path.exists() and self.path.parent.is_dir():
            raise SchemaMissing(str(self.path))
        return connect(self.path)


def connect(path: Path, *, create: bool = False) -> sqlite3.Connection:
    """A connection with durable commits; transactions are begun by hand. Without `create` the file must be there.

    A file that is created is its owner's alone, and so are its WAL and its journal, which SQLite makes like the file.
    The mode of one that is there already is left as it is.
    """
    if create:
        with suppress(OSError):  # it is there, or SQLite says what is wrong with the place
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.execute("pragma synchronous = full")
    connection.execute("pragma cache_size = -16000")  # KiB; what a large put_many writes must not spill
    return connection


def rows(connection: sqlite3.Connection, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
    """The rows that queries/<name>.sql answers."""
    return connection.execute(query(PACKAGE, name), params).fetchall()


def run(connection: sqlite3.Connection, steps: Steps[T]) -> T:
    """Drive an operation to its end on this connection; an error of the driver is raised where it yielded."""
    try:
        step = next(steps)
        while True:
            try:
                answer = _perform(connection, step)
            except sqlite3.Error as error:
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as done:
        result: T = done.value
        return result


def _perform(connection: sqlite3.Connection, step: Step) -> list[Row]:
    if isinstance(step, Copy):
        raise TypeError("SQLite has no COPY")
    if isinstance(step, Values):
        return list(connection.execute(step.sql, step.values).fetchall())
    return list(connection.execute(step.sql, step.params).fetchall())
