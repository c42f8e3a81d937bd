"""The scoreboard's tables in one PostgreSQL database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from psycopg.rows import dict_row

from carrick.errors import InvalidInput
from carrick.outbox.migration import Part
from carrick.outbox.postgres.connections import Connection, Connections
from carrick.outbox.postgres.migrate import check_schema
from carrick.outbox.statement import query
from carrick_scoreboard.store.tables import Ask, Row

PACKAGE = "carrick_scoreboard.store.postgres"
PART = Part("scoreboard", PACKAGE)


class PostgresTables:
    """One database; who must wait for whom is said by the row locks of the queries."""

    def __init__(self, dsn: str) -> None:
        self._connections = Connections(dsn)

    @contextmanager
    def reading(self) -> Iterator[Ask]:
        with self._connections.connection() as connection:
            yield Asking(connection)

    @contextmanager
    def writing(self) -> Iterator[Ask]:
        with self._connections.connection() as connection, connection.transaction():
            yield Asking(connection)

    def check_schema(self) -> None:
        with self._connections.connection() as connection:
            check_schema(connection, PART)

    def close(self) -> None:
        self._connections.close()


class Asking:
    """Queries in one transaction of this connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection: Any = connection

    def __call__(self, name: str, /, **params: Any) -> list[Row]:
        with self.connection.cursor(binary=True, row_factory=dict_row) as cursor:
            try:
                cursor.execute(query(PACKAGE, name).encode(), params)
            except UnicodeEncodeError as error:
                raise InvalidInput("parameter", str(error), "text without lone surrogates") from None
            return [] if cursor.rownumber is None else list(cursor.fetchall())

    def redrive(self, channel: str, entry_id: UUID) -> None:
        self.connection.execute("select carrick.redrive(%s, %s, spread_seconds => 0)", [channel, [entry_id]])

    def discard(self, channel: str, entry_id: UUID) -> None:
        self.connection.execute("select carrick.discard(%s, %s)", [channel, [entry_id]])
