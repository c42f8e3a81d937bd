"""The store's own connections: opened when needed, kept while idle, thrown away when broken.

No session state and no prepared statements, so a pooler in transaction mode may stand between.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec
import psycopg
from psycopg.abc import AdaptContext, Loader
from psycopg.pq import Format
from psycopg.types.json import set_json_loads
from psycopg.types.string import ByteaBinaryLoader

from carrick.errors import StoreUnavailable
from carrick.outbox.adapters.adapter import drive
from carrick.outbox.adapters.psycopg import perform
from carrick.outbox.postgres.failures import map_errors
from carrick.outbox.statement import Steps

Connection = psycopg.Connection[tuple[Any, ...]]

MAX_IDLE = 8

T = TypeVar("T")


class UtcLoader(Loader):
    """Times come in UTC whatever the session's time zone is, and in a third of the time: nothing is converted."""

    format = Format.BINARY

    def __new__(cls, oid: int, context: AdaptContext | None = None) -> Loader:  # type: ignore[misc]
        """Psycopg's own (in C, where there is one), told of no session."""
        own = psycopg.adapters.get_loader(oid, Format.BINARY)
        assert own is not None
        return own(oid, None)


def set_loaders(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """What a connection makes of answers in binary."""
    set_json_loads(msgspec.json.decode, connection)
    connection.adapters.register_loader("json", ByteaBinaryLoader)  # a payload is never parsed here
    connection.adapters.register_loader("timestamptz", UtcLoader)  # type: ignore[type-abstract]


class Connections:
    """Connections to one database, each used by one thread at a time."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection in autocommit mode. Psycopg's errors come out as Carrick's."""
        with map_errors():
            connection = self._take()
            try:
                yield connection
            finally:
                self._give_back(connection)

    def close(self) -> None:
        """Close all idle connections; those in use are closed when given back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> Connection:
        with self._lock:
            if self._closed:
                raise StoreUnavailable("this store is closed")
            while self._idle:
                connection = self._idle.pop()
                if not connection.closed:
                    return connection
        connection = psycopg.connect(self._dsn, autocommit=True, prepare_threshold=None)
        set_loaders(connection)
        return connection

    def _give_back(self, connection: Connection) -> None:
        reusable = not connection.closed and connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        with self._lock:
            if reusable and not self._closed and len(self._idle) < MAX_IDLE:
                self._idle.append(connection)
                return
        connection.close()


def run(connection: Connection, steps: Steps[T]) -> T:
    """Drive an operation to its end on this connection."""
    with connection.cursor() as cursor:
        return drive(steps, lambda step: perform(cursor, step))
