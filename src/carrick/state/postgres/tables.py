"""Shared state in one PostgreSQL database: every operation is one statement."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from carrick.outbox.migration import Part
from carrick.outbox.postgres.connections import Connections
from carrick.outbox.postgres.migrate import check_schema
from carrick.outbox.statement import query
from carrick.state.kv import Count, Item
from carrick.state.postgres.listening import channel_of, listen

PACKAGE = "carrick.state.postgres"
STATE = Part("state", PACKAGE)


class PostgresTables:
    """The tables of shared state in one database."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connections = Connections(dsn)

    def close(self) -> None:
        self._connections.close()

    def check_schema(self) -> None:
        with self._connections.connection() as connection:
            check_schema(connection, STATE)

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        return dict(self._rows("get_many", keys=list(keys)))

    def set(self, key: str, value: bytes, ttl: float) -> None:
        self._rows("set", key=key, value=value, ttl=ttl)

    def set_if_absent(self, key: str, value: bytes, ttl: float) -> bool:
        return bool(self._rows("set_if_absent", key=key, value=value, ttl=ttl))

    def compare_and_set(self, key: str, expected: bytes, value: bytes, ttl: float) -> bool:
        return bool(self._rows("compare_and_set", key=key, expected=expected, value=value, ttl=ttl))

    def delete(self, key: str, expected: bytes | None) -> bytes | None:
        removed = self._rows("delete", key=key, expected=expected)
        return removed[0][0] if removed else None

    def increment(self, key: str, ttl: float, by: int) -> Count | None:
        counted = self._rows("increment", key=key, ttl=ttl, by=by)
        return Count(*counted[0]) if counted else None

    def scan(self, prefix: str, limit: int) -> list[Item]:
        return [Item(*row) for row in self._rows("scan", prefix=prefix, limit=limit)]

    def publish(self, topic: str, text: str) -> None:
        self._rows("publish", channel=channel_of(topic), text=text)

    def prune(self, max_rows: int) -> int:
        return int(self._rows("prune", max_rows=max_rows)[0][0])

    def listen(self, topic: str) -> AsyncGenerator[str | None, None]:
        return listen(self._dsn, topic)

    def _rows(self, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        with self._connections.connection() as connection, connection.cursor(binary=True) as cursor:
            cursor.execute(query(PACKAGE, name).encode(), params)
            return [] if cursor.rownumber is None else cursor.fetchall()
